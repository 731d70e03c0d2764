// Package archive reads tar archives and layers of OCI images that may be hostile, and packs trees of files into archives whose bytes
// depend on the tree only.
//
// Everything is written through os.Root and within Limits. An archive with anything but files, folders and links that stay inside is
// rejected with an InvalidError; Tree has the rules. Errors of other types come from the reader or from the file system, so the
// same archive may be read successfully later.
package archive
