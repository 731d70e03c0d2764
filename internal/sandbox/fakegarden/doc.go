// Package fakegarden is a Gardener in memory, for the sandbox and for tests. It starts within a second and needs only a folder.
//
// Its client behaves like a client of Gardener's API server: it has the types, defaults, rejections, subresources and watches
// that this project uses. For each Shoot, the simulated gardenlet creates a runtime; the Shoot's admin kubeconfig connects to a
// simulated API server. All objects are stored in files, so a garden that was killed resumes where it stopped.
//
// Package conformance runs the same scenarios and rejections against this garden and against the local garden (test/garden),
// which is a real Gardener API server with the same initial objects and the same gardenlet. To imitate another Gardener rule, add
// it to an admission file and to conformance/rejections.yaml. To add an object that exists in both gardens from the start, add it
// to seed.yaml.
//
// The layers, from the bottom up: kubeapi is an API server without admission rules; this package adds Gardener's kinds and rules,
// and the initial objects; gardenlet turns Shoots into runtimes; runtimes serves the runtimes with kubeapi; certificate issues
// the certificates for all of them.
package fakegarden
