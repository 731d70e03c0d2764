// Package auditlog keeps the audit trail: entries in a table of its own, and those of accepted operations, which are kept with the
// operations. The databases themselves refuse to change them.
package auditlog
