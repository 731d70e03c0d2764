// Package output prints the results of ebctl: as tables for people, as JSON or YAML for programs.
//
// Text from the broker cannot break a line or control the terminal. The names of fields in JSON and YAML are the same.
package output
