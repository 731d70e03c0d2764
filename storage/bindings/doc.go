// Package bindings stores the bindings of the broker's service instances, with sealed credentials. The row of a binding is the intent of
// its account in the runtime: it exists before the account and is removed after it. Removing an instance removes its bindings.
//
// A new column takes a migration and a field of row, insert and binding().
package bindings
