// Package secret protects secrets: String prints as stars in logs, errors and JSON, and a Keyring seals secrets at rest.
//
// A sealed value is encrypted with AES-256-GCM and starts with the ID of its key. A Keyring seals with its first key and opens
// with any of its keys, so operators can rotate keys: after a change of the first key, package storage/keyrotation re-encrypts
// all stored values. A sealed value opens only for the place for which it was sealed, so an attacker with write access to the
// database cannot move it to another row or column.
package secret
