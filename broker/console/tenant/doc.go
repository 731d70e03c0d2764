// Package tenant serves the pages of the console for users without a role: an instance with its state, the progress of its operation and
// its kubeconfig. It changes nothing.
//
// A user sees an instance if its name is among the administrators of the instance, or if a claim of its token names the account of the instance.
// Any other instance is missing for it: the response is the same as for an ID that no instance has. Users with the role viewer see all
// instances.
package tenant
