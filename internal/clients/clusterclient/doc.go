// Package clusterclient calls the API servers of runtimes.
//
// Access is the broker's client: it probes runtimes, validates tenants' kubeconfigs, and manages the ServiceAccounts of bindings.
// The Provisioner has a separate client in package clusteraccess. Both clients use Transport, which serves one session and caches
// nothing.
//
// Runtimes belong to tenants, so the package limits the time and size of every response, does not follow redirects, and quotes no
// kubeconfig in an error. Errors carry a failure.Kind. To add an action in a runtime, add a method of Access that calls
// inSession.
package clusterclient
