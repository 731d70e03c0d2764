// Package bindings stores the bindings of the broker's service instances, with sealed credentials.
//
// A binding's row records the intent to create an account in the runtime: it is stored before the account exists and removed
// after the account is gone. A binding is creating, ready or deleting. A binding that is being deleted may exist next to a new
// one with the same ID of the platform; therefore rows have an ID of their own. Removing an instance removes its bindings.
//
// A new column needs a migration and a field of row, and must be added to Insert and to binding().
package bindings
