// Package ebctl is the command-line tool for operators: it creates, shows, changes and deletes service instances, lists
// operations and audit entries, follows operations and intervenes in them.
//
// Results are printed to standard output as a table, JSON or YAML; progress and errors are printed to standard error. Scripts can
// rely on JSON, YAML and the exit codes. No command repeats a request. If the outcome of a request is unknown, the error explains
// how to repeat the request safely.
//
// A command of the operator API calls a generated method of brokerclient; docs/contributor/add-an-operator-endpoint.md describes
// how to add one. root.go lists all commands, and testdata/script has a script for each.
package ebctl
