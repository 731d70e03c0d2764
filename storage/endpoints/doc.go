// Package endpoints stores the addresses of the runtimes' API servers, so that the broker can return kubeconfigs for users without
// calling the Provisioner.
//
// A row belongs to an instance. Its content names the runtime, so the row is ignored once the instance has a different runtime or
// no runtime. The content is not secret. It is sealed so that nobody can forge an address, to which users would then send their
// tokens.
package endpoints
