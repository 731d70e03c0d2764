// Package output prints the results of ebctl: as tables for people, as JSON, YAML or the result of an expression for programs.
//
// Tables replace line breaks and remove control characters, so text from the broker can neither break a row nor control the terminal. JSON
// and YAML have the same field names. A command passes two forms of its result to Format.Print: a value for programs and a Text for people.
package output
