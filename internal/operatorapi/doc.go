// Package operatorapi holds the JSON of the operator API: what the broker writes and its clients read. It has no behaviour.
package operatorapi
