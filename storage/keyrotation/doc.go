// Package keyrotation re-encrypts sealed columns with the first key of APP_DATABASE_SECRET_KEYS, in the background and while the services
// run, until no row needs a former key any more. Every replica runs it; concurrent runs and writers do not disturb each other.
//
// A store with a new sealed column returns it from a function Sealed, which the service passes in Options.Columns.
package keyrotation
