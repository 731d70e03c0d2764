// Package ebctl is the operator's command-line tool: it orders, shows and removes service instances and follows the operations that
// carry them. One file holds one command. Results go to standard output; progress and errors go to standard error.
package ebctl
