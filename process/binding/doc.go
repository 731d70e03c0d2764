// Package binding contains the broker's two processes for service bindings: one creates an account in a runtime, the other
// removes it. Each step is a file, and process.go orders them.
//
// An account never outlives its binding. The two processes may run at the same time, because a client may unbind before the
// access is ready: whichever of them comes last removes the account. The binding's row is the intent. It is created before the
// account and removed after it.
package binding
