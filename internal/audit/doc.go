// Package audit writes the audit log: who did what, and who was refused. Accepted operations carry their entry in their own row; everything
// else, refusals included, is an entry of its own. Entries never change.
//
// Introduce and ActorOf find out who makes a request. A Recorder adds entries, in the transaction of the change that they describe; its
// middleware Refusals records rejected requests, sampled under load. A new kind of action is a constant of storage/auditlog, where entries
// are defined and stored.
package audit
