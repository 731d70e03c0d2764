// Package archive reads tar archives and OCI image layers that may be hostile, and packs file trees into archives whose bytes
// depend only on the tree.
//
// Everything is written through os.Root and within Limits. An archive may contain only files, folders, and links that stay inside
// the extracted tree. Any other archive is rejected with an InvalidError; the documentation of Tree lists the rules. Errors of
// other types come from the reader or from the file system, so the same archive may be read successfully later.
package archive
