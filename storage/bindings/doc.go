// Package bindings stores the bindings of the broker's service instances, with sealed credentials. A binding's row
// records the intent to create its account: it is stored before the account exists and removed after the account is gone. Removing an instance
// removes its bindings.
//
// A new column needs a migration and must be added to the type row, to insert and to binding().
package bindings
