// Package bindings stores the bindings of the broker's service instances, with encrypted credentials.
//
// A binding's row records the intent to create a ServiceAccount in the runtime. The row is stored before the ServiceAccount
// exists and removed after it is gone. A binding is creating, ready or deleting. While a binding is being deleted, the platform
// may already create a new binding with the same ID, so each row also has a unique ID. Removing an instance removes its
// bindings.
//
// A new column needs a migration and a field of environment.Binding, and must be added to status and Insert. If the table stores it as
// a different type, it also needs a field in row and a line in binding().
package bindings
