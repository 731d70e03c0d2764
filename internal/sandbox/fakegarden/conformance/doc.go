// Package conformance tests that both gardens behave alike: the fake garden (package fakegarden) and the local garden
// (test/garden), which is a real Gardener API server. The tests of each garden call Lifecycle, Faults and Rejections.
//
// Each Gardener rule that fakegarden imitates has an entry in rejections.yaml: a patch that makes a valid Shoot invalid, and the
// expected error. A rule that a single patch cannot violate has an entry in the function requests. The package has no _test.go
// files, because the tests of the local garden import it from another Go module.
//
// The package checks only behavior that the Provisioner relies on: the reasons and messages of errors, the order of states, and
// the objects that remain after a deletion. It does not compare durations or Gardener versions. If a new version of Gardener
// behaves differently, the tests of the local garden fail first. Fix this package and fakegarden together.
package conformance
