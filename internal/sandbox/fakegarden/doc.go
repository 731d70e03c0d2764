// Package fakegarden is a Gardener in memory, for the sandbox and for tests. It starts within a second and needs nothing but a folder.
//
// Its client behaves like a client of Gardener's API server, with the types, defaults, rejections, subresources and watches that the
// project uses. A created Shoot becomes a runtime: the simulated gardenlet works on it, and its admin kubeconfig leads to a simulated API
// server. All objects are kept in files, so a garden that was killed continues where it was.
//
// Package conformance runs the same scenarios and rejections on this garden and on the local garden (test/garden), which is a real Gardener
// API server with the same seed and the same gardenlet. A rule of Gardener that matters here goes into an admission file and into
// rejections.yaml of conformance, an object that both gardens start with into seed.yaml.
//
// The parts, from the bottom up: kubeapi is an API server without rules; this package adds the kinds, the rules and the seed of Gardener;
// gardenlet turns Shoots into runtimes; runtimes serves these, again with kubeapi; certificate issues the certificates of all of them.
package fakegarden
