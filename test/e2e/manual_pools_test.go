package e2e

import (
	"context"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (c clusters) pools(name string) map[string]gardencorev1beta1.Worker {
	c.Helper()

	found := map[string]gardencorev1beta1.Worker{}
	for _, pool := range c.shoot(name).Spec.Provider.Workers {
		found[pool.Name] = pool
	}

	return found
}

// addPoolManually adds a worker pool to the named Shoot directly in Gardener. It returns a function that fails the test if the
// pool has changed. The parameter after names the preceding operation in the failure message.
func (c clusters) addPoolManually(name string) (isUnchanged func(after string)) {
	c.Helper()

	edited := c.shoot(name)
	before := edited.DeepCopy()

	pool := *edited.Spec.Provider.Workers[0].DeepCopy()
	pool.Name, pool.Minimum, pool.Maximum = "by-hand", 1, 7
	pool.Labels = map[string]string{"example.com/team": "data"}
	edited.Spec.Provider.Workers = append(slices.Clone(edited.Spec.Provider.Workers), pool)

	if err := c.garden.Patch(context.Background(), edited, client.MergeFrom(before), client.FieldOwner("somebody")); err != nil {
		c.Fatal(err)
	}

	want, added := c.pools(name)[pool.Name]
	if !added || want.Maximum != pool.Maximum {
		c.Fatalf("the Shoot has the pools %v", c.pools(name))
	}

	return func(after string) {
		c.Helper()

		if diff := cmp.Diff(want, c.pools(name)[pool.Name]); diff != "" {
			c.Errorf("the manually added pool, after %s, -want +got:\n%s", after, diff)
		}
	}
}
