//go:build garden

package e2e

import "testing"

// TestAccountPoolOfManyTenantsOnLocalGarden runs testAccountPool on the API server of Gardener.
func TestAccountPoolOfManyTenantsOnLocalGarden(t *testing.T) {
	t.Parallel()

	testAccountPool(t, localGarden(t, "--runtimes=shared"))
}
