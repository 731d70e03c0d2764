// Package auditlog stores the broker's audit log: who requested which change, and which requests were rejected.
//
// The entry of an accepted operation is a column of the operation's row, so that accepting an operation needs no second write.
// All other entries are rows of the table audit. List merges both. Database triggers reject changes to entries, and their removal
// before the retention period is over.
//
// A new action gets a constant in entry.go. A new field of an entry is optional JSON, so that old entries still decode.
package auditlog
