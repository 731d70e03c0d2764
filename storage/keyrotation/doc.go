// Package keyrotation re-encrypts sealed columns with the first key of APP_DATABASE_SECRET_KEYS. This happens in the background
// while the services run, until no row needs an old key. docs/operator/keys.md describes the procedure for operators.
//
// Every replica runs a Rotator. A rotation updates a row only if the envelope has not changed since the rotation read it, so
// concurrent rotations and writers never lose a change. A rotation that is interrupted restarts at the first row; rows that are
// already sealed with the first key are cheap to skip.
//
// A rotation also seals the bound columns of rows that an older release sealed without them, see storage.Bound.
//
// Each store with a sealed column has a function named Sealed, which returns the column. The service passes these columns in
// Options.Columns.
package keyrotation
