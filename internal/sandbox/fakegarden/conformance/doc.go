// Package conformance tests that both gardens behave alike, so that the project works on either of them: the one in memory (package
// fakegarden) and the local one (test/garden), which is a real Gardener API server. A garden runs Lifecycle, Faults and Rejections; a rule of
// Gardener that fakegarden imitates has a row in rejections.
package conformance
