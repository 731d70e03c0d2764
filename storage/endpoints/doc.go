// Package endpoints stores the addresses of the runtimes' API servers, so that the broker can return kubeconfigs for users without
// calling the Provisioner.
//
// Each row belongs to an instance. Its content names the runtime, so the row is ignored once the instance has a different runtime
// or none. The content is not secret, but it is sealed so that nobody can forge an address, to which users would then send their
// tokens.
package endpoints
