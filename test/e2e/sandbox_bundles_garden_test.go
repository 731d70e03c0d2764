//go:build garden

package e2e

import "testing"

// TestSandboxBundlesOnLocalGarden runs testSandboxBundles with real API servers.
func TestSandboxBundlesOnLocalGarden(t *testing.T) {
	t.Parallel()

	testSandboxBundles(t, "--garden="+gardenProgram(t))
}
