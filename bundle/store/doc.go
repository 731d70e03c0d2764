// Package store keeps the content of bundles in a folder: content-addressed archives that any number of Bundles share, and uploads by the
// name of their Bundle.
//
// A file appears under its name only after all of it is on the disk, so a crash at any moment leaves each file either complete or absent.
// Archives are verified before they are opened. A damaged one is removed and treated as absent; its Bundle is then unpacked again from its
// resolved source. Several processes may share the folder.
package store
