// Package clusterclient reaches the API servers of runtimes. Transport is the base of both services: a kubeconfig serves one session, and
// nothing is cached. Access is the broker's part: it probes runtimes, validates kubeconfigs of tenants, and creates and removes the
// ServiceAccounts of bindings. The Provisioner's part is package clusteraccess. Errors are of package failure.
package clusterclient
