// Package views has the pages of the console as templates. They receive types of the operator API, read no database, and know no roles:
// the caller decides which actions a page offers.
//
// Templates are *.templ files; `go generate` writes the Go files. Every text is escaped. Pages contain neither inline scripts nor inline
// styles, which the Content-Security-Policy forbids.
package views

//go:generate go tool templ generate -include-version=false -path .
