// Package fakegarden is a Gardener in memory, for the sandbox and for tests: it starts in a second and needs nothing but a folder.
//
// Its client behaves as a client of Gardener's API server, with the types, defaults, rejections, subresources and watches that the project
// meets there. Shoots that are created become runtimes: a simulated gardenlet works on them, and the admin kubeconfigs that the
// garden gives out lead to an endpoint that checks them. All objects are kept in files, so a garden that was killed goes on where it was.
//
// The same stories and rejections (package conformance) are tested against it and against a real Gardener API server.
package fakegarden
