package main_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
)

// TestGarden runs what all tiers of the garden have to pass.
func TestGarden(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"own", "shared"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			garden := start(t, t.TempDir(), "--runtimes", mode).underTest(t)
			t.Run("story", func(t *testing.T) { conformance.Story(t, garden) })
			t.Run("faults", func(t *testing.T) { conformance.Faults(t, garden) })
			t.Run("rejections", func(t *testing.T) { conformance.Rejections(t, garden) })
		})
	}
}
