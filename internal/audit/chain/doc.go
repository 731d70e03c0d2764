// Package chain defines the hash chain over the audit log of a service, and verifies it without trusting the service.
//
// A record of the chain covers one row: an entry in the audit table, or the audit columns of an operation. Its hash includes the
// hash of the preceding record, so nobody can change, remove, insert or reorder rows without changing all later hashes. Personal
// fields are covered by a salted digest. An erasure removes the fields and the salt but keeps the digest, so the chain can still
// be verified, while nobody can guess the fields from their digest.
//
// All digests are SHA-256 in lower-case hexadecimal, over the concatenation of fields in the form `LENGTH:BYTES,`, with the
// length in bytes as a decimal number:
//
//   - personal: salt, orderedBy, entry
//   - content: at, action, instance ID, operation ID, predecessor ID, status, account, personal
//   - hash: hash of the preceding record, number, source, ID, time of chaining, keepUntil, content
//
// Package storage/auditlog chains rows. A Verifier checks records one by one, in constant memory. An export is a file of JSON
// Lines; see Line.
package chain
