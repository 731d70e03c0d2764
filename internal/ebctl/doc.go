// Package ebctl is the command-line tool for operators: it creates, shows, changes and deletes service instances, lists
// operations and audit entries, follows operations and intervenes in them.
//
// Results are printed to standard output as a table, JSON or YAML; progress and errors are printed to standard error. Scripts can
// rely on JSON, YAML and the exit codes. No command retries a request to the broker or the Provisioner that changes something. If the
// outcome of a request is unknown, the error explains how to repeat the request safely.
//
// Commands for the operator API call generated methods of brokerclient; docs/contributor/add-an-operator-endpoint.md describes how
// to add a command. root.go lists all commands, and testdata/script has a script for each.
package ebctl
