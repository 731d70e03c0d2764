// Package endpoints stores the addresses of the runtimes' API servers, so that the broker can return kubeconfigs for users without
// calling the Provisioner.
//
// A row belongs to an instance. Its content names the runtime, so it is ignored once the instance has another runtime or none.
// The content is not secret. It is sealed because users would send their tokens to a forged address.
package endpoints
