// Package audit writes the audit log: who changed what, and whose requests were rejected.
//
// The row of an accepted operation is its own audit entry. Every other action is a row of the audit log, written in the transaction of the
// change that the entry describes, so neither exists without the other. Entries never change.
//
// Introduce and ActorOf identify the user behind a request. A Recorder adds entries; its middleware Refusals records rejected requests,
// sampled under load. A new kind of action is a constant of storage/auditlog, the package that defines and stores entries.
package audit
