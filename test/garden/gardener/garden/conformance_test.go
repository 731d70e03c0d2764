package main_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
)

// TestConformance runs the tests that the local garden and the fake garden must both pass.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"own", "shared"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			garden := start(t, t.TempDir(), "--runtimes", mode).underTest(t)
			t.Run("lifecycle", func(t *testing.T) { conformance.Lifecycle(t, garden) })
			t.Run("faults", func(t *testing.T) { conformance.Faults(t, garden) })
			t.Run("rejections", func(t *testing.T) { conformance.Rejections(t, garden) })
		})
	}
}
