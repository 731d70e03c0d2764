// Package bindings stores the bindings of the broker's service instances, with sealed credentials.
//
// A binding's row records the intent to create an account in the runtime: it is stored before the account exists and removed
// after the account is gone. A binding is creating, ready or deleting. While a binding is being deleted, the platform may already
// create a new one under the same ID; therefore rows have an ID of their own. Removing an instance removes its bindings.
//
// A new column needs a migration and a field of row, and must be added to Insert and to binding().
package bindings
