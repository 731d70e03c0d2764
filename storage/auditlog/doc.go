// Package auditlog stores the audit log of a service: who requested which change, and which requests were rejected.
//
// The entry of an accepted operation is a column of the operation's row, so accepting an operation needs no second write.
// All other entries, including entries about retries, are rows of the audit table. List merges both. Database triggers reject
// changes to entries, and reject their removal during the retention period. An erasure of an account's data may remove the
// content of entries, but not the entries.
//
// A new action needs a constant in entry.go. A new field of an entry must be optional in JSON, so that old entries can still be
// decoded.
package auditlog
