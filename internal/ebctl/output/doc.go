// Package output prints the results of ebctl: as tables for users, and as JSON, YAML or the result of an expression for scripts.
//
// Tables replace line breaks and remove control characters, so that text from the broker cannot break a row or control the
// terminal. JSON and YAML have the same field names. A command passes two forms of its result to Format.Print: a value for
// scripts and a Text for users.
package output
