// Package keyrotation exchanges the keys of what is sealed in the database, in the background and while the services work: what was
// sealed with a former key is sealed anew with the first one, until nothing needs the former key any more.
package keyrotation
