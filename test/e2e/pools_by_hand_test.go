package e2e

import (
	"context"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pools are the pools of machines that the Shoot has, by their names.
func (c clusters) pools(name string) map[string]gardencorev1beta1.Worker {
	c.Helper()

	found := map[string]gardencorev1beta1.Worker{}
	for _, pool := range c.shoot(name).Spec.Provider.Workers {
		found[pool.Name] = pool
	}

	return found
}

// addsAPoolByHand has an operator give the Shoot a further pool, in Gardener and past the Provisioner. What it returns finds out whether
// the pool is still as it was.
func (c clusters) addsAPoolByHand(name string) (isKept func(after string)) {
	c.Helper()

	theirs := c.shoot(name)
	before := theirs.DeepCopy()

	pool := *theirs.Spec.Provider.Workers[0].DeepCopy()
	pool.Name, pool.Minimum, pool.Maximum = "by-hand", 1, 7
	pool.Labels = map[string]string{"example.com/team": "data"}
	theirs.Spec.Provider.Workers = append(slices.Clone(theirs.Spec.Provider.Workers), pool)

	if err := c.garden.Patch(context.Background(), theirs, client.MergeFrom(before), client.FieldOwner("somebody")); err != nil {
		c.Fatal(err)
	}

	want, added := c.pools(name)[pool.Name]
	if !added || want.Maximum != pool.Maximum {
		c.Fatalf("the Shoot has the pools %v", c.pools(name))
	}

	return func(after string) {
		c.Helper()

		if diff := cmp.Diff(want, c.pools(name)[pool.Name]); diff != "" {
			c.Errorf("the pool that was added by hand, after %s, -want +got:\n%s", after, diff)
		}
	}
}
