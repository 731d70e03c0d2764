//go:build garden

package e2e

import "testing"

// TestAccountPoolOfManyTenantsOnLocalGarden runs testAccountPool with Gardener's API server.
func TestAccountPoolOfManyTenantsOnLocalGarden(t *testing.T) {
	t.Parallel()

	garden := sharedGarden(t, "simulated")
	testAccountPool(t, garden.kubeconfig, garden.Namespace())
}
