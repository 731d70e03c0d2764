// Package auditlog stores the audit log: entries in a table of its own, and those of accepted operations, which are columns of the
// operations. Triggers in the databases reject changes of entries, and their removal before the retention period is over.
//
// A new action gets a constant in entry.go. A new field of an entry is optional JSON, so that old entries still decode.
package auditlog
