// Package store keeps the content of bundles in a folder: content-addressed archives, which several Bundles can share, and uploads, which
// have the names of their Bundles.
//
// A file gets its name only after its content is on disk, so after a crash each file is either complete or absent. Archives are verified
// before they are opened. A damaged archive is removed and treated as absent, and its Bundle is unpacked again from the resolved source.
// Several processes may share the folder.
package store
