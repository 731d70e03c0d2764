// Package secret protects secrets: String prints as stars in logs, errors and JSON, and a Keyring seals secrets at rest.
//
// An envelope is encrypted with AES-256-GCM and names its key, so keys can be rotated: the first key seals, all keys open. It is bound to the
// place where it is stored and cannot be moved to another row or column. Package storage/keyrotation seals stored envelopes again after a
// change of the first key.
package secret
