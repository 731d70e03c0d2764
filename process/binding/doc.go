// Package binding contains the broker's two processes for service bindings. One creates a ServiceAccount in the runtime, and the
// other removes it. This ServiceAccount is called the account of the binding. Each step has its own file, and process.go orders
// the steps.
//
// An account never outlives its binding. The two processes can run at the same time, because a client may unbind before the
// access is ready. The process that ends last then removes the account. The binding's row is the intent: it is created before
// the account and removed after it.
package binding
