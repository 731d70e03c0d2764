// Package ebctl is the operator's command-line tool: it creates, shows, changes and deletes service instances, lists operations and audit
// entries, intervenes in operations, and follows them.
//
// Results go to standard output, as a table, JSON or YAML; progress and errors go to standard error. Scripts can rely on JSON, YAML and
// the exit codes. No command repeats a request, and the errors of requests that may have been received say how to repeat them.
//
// A command of the operator API calls a generated method of brokerclient; docs/contributor/add-an-operator-endpoint.md describes how to
// add one. root.go lists all commands, and testdata/script has a script for each.
package ebctl
