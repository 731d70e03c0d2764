// Package tenant serves the pages of the console for users without a role. A page shows an instance with its state, the progress
// of its operation and its kubeconfig. Users cannot change anything here.
//
// A user sees an instance if the user's name is among the administrators of the instance, or if a claim of the user's token names
// the account of the instance. For any other instance, the response is the same as for an ID that does not exist. Users with the
// viewer role see all instances.
package tenant
