// Package audit writes the audit log: who changed what, and whose requests were rejected.
//
// The row of an accepted operation on an instance or a runtime also serves as its audit entry. Every other action has a row
// in the audit log. The row is written in the same transaction as the change, so neither exists without the other. Entries
// never change, except that the erasure of an account removes personal data from them.
//
// Introduce and ActorOf identify the user behind a request. A Recorder adds entries; its Refusals middleware records rejected
// requests, sampled under load. To add a kind of action, add a constant to package storage/auditlog, which defines and stores
// entries.
package audit
