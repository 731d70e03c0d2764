//go:build garden

package e2e

import "testing"

// TestAccountPoolOfManyTenantsOnLocalGarden runs testAccountPool with Gardener's API server.
func TestAccountPoolOfManyTenantsOnLocalGarden(t *testing.T) {
	t.Parallel()

	testAccountPool(t, localGarden(t, "--runtimes=shared"))
}
