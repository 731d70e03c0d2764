// Package binding has the broker's two processes for service bindings: one creates an account in a runtime, the other removes it. Each
// step is a file; process.go orders them. An account never outlives its binding: whichever process comes last removes it.
package binding
