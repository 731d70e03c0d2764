// Package secret protects secrets: String prints as stars in logs, errors and JSON, and a Keyring seals secrets at rest.
//
// An envelope is a text encrypted with AES-256-GCM, with the ID of its key. The first key of a Keyring seals and all keys open, so operators can
// rotate keys: after a change of the first key, package storage/keyrotation seals all stored envelopes again. An envelope opens only for the
// place where it was sealed, so somebody who can write to the database cannot move it to another row or column.
package secret
