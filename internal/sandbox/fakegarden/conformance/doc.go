// Package conformance tests that both gardens behave alike, so that the project works on either of them: the one in memory (package
// fakegarden) and the local one (test/garden), which is a real Gardener API server. A garden runs Lifecycle, Faults and Rejections.
//
// A rule of Gardener that fakegarden imitates has an entry in rejections.yaml: a valid Shoot, the patch that spoils it, and the expected
// error. A rule that needs more than one request is a function in requests. All code is in ordinary files, because the tests of the local
// garden, which are in another Go module, import it.
//
// The package asserts what the Provisioner relies on: reasons and texts of errors, the order of states, and the objects that a deletion
// leaves. It does not compare durations or versions of Gardener. If a new version of Gardener behaves differently, the tests of the local
// garden fail first; the fix goes into this package and into fakegarden together.
package conformance
