// Package keyrotation re-encrypts sealed columns with the first key of APP_DATABASE_SECRET_KEYS, in the background and while the
// services run, until no row needs an old key. docs/operator/keys.md describes the procedure for operators.
//
// Every replica runs a Rotator. A rotation updates a row only if the envelope is still the one that it read, so concurrent
// rotations and writers never lose a change. A rotation that is interrupted starts again at the first row; rows that have the
// first key are cheap to skip.
//
// A store with a sealed column returns it from a function Sealed; the service passes the columns in Options.Columns.
package keyrotation
