// Package views contains the pages of the console as templates. The templates receive types of the operator API, and know neither
// the database nor roles: the caller decides which actions a page offers.
//
// Templates are *.templ files; `go generate` writes the Go files. Every text is escaped. Pages contain neither inline scripts nor
// inline styles, because the Content-Security-Policy forbids them.
package views

//go:generate go tool templ generate -include-version=false -path .
