// Package runtimes stores the Provisioner's runtimes and the idempotency keys of the calls that asked for operations.
package runtimes
