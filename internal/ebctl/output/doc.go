// Package output prints what ebctl found out: as a table for people, as JSON or YAML for programs.
package output
