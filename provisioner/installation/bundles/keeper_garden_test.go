//go:build garden

package bundles_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/installation/bundles"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// rows are the runtimes of a Provisioner.
type rows map[string]runtimes.Runtime

func (r rows) Reader() storage.Tx { return nil }

func (r rows) Get(_ context.Context, _ storage.Tx, id string) (runtimes.Runtime, error) {
	found, known := r[id]
	if !known {
		return found, storage.ErrNotFound
	}

	return found, nil
}

func (r rows) DeletedAmong(_ context.Context, ids []string) (deleted []string, _ error) {
	for _, id := range ids {
		if !r[id].DeletedAt.IsZero() {
			deleted = append(deleted, id)
		}
	}

	return deleted, nil
}

// TestKeeper renews the kubeconfig of a runtime once, regardless of the number of replicas, and removes the objects of a deleted runtime.
func TestKeeper(t *testing.T) {
	on := startHub(t)
	c, foreign := newCluster(t, on, false), newCluster(t, on, false)
	c.install(release{"a": configMap("one", "1")}, c.part("a"))
	foreign.install(release{"a": configMap("one", "1")}, foreign.part("a"))

	known := rows{c.runtime: {ID: c.runtime, ShootName: "c-renewed"}}
	clock := clocktesting.NewFakeClock(time.Now())

	c.now = clock.Now

	var replicas []bundles.Keeper
	for range 2 {
		replicas = append(replicas, bundles.Keeper{Installer: c.installer(nil, c.hub.config), Runtimes: known, Clock: clock, Log: logging.Discard()})
	}

	renew := func(reason string, after time.Duration, want int) {
		t.Helper()
		clock.Step(after)

		for _, replica := range replicas {
			if err := replica.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		if got := c.kubeconfigs.count() + foreign.kubeconfigs.count(); got != want {
			t.Errorf("%s: %d kubeconfigs, want %d", reason, got, want)
		}
	}

	until := c.expiry()
	renew("fresh kubeconfigs are kept", 0, 2)
	renew("after half of the validity, the kubeconfig of the known runtime is renewed once", until.Sub(clock.Now())-time.Minute, 3)

	if c.kubeconfigs.issued[1] != "c-renewed" {
		t.Errorf("the kubeconfig is of %s", c.kubeconfigs.issued[1])
	}

	for _, replica := range replicas {
		if err := replica.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	if len(c.onHub()) == 0 {
		t.Fatal("a runtime that is not deleted was removed")
	}

	known[c.runtime] = runtimes.Runtime{ID: c.runtime, DeletedAt: clock.Now()}

	c.Eventually(func() string {
		if err := replicas[0].Sweep(t.Context()); err != nil {
			return err.Error()
		}

		if left := c.onHub(); len(left) > 0 {
			return "left: " + left[0]
		}

		return ""
	})

	if len(foreign.onHub()) == 0 {
		t.Error("a runtime of another Provisioner was removed")
	}
}

// expiry returns when the kubeconfig of the runtime expires.
func (c *cluster) expiry() time.Time {
	c.Helper()

	secrets := &corev1.SecretList{}
	if err := c.List(c.Context(), secrets, client.MatchingLabels{bundles.LabelRuntime: c.runtime}); err != nil || len(secrets.Items) != 1 {
		c.Fatal(err, len(secrets.Items))
	}

	until, err := time.Parse(time.RFC3339, secrets.Items[0].Annotations["provisioner.environment-broker.io/expires-at"])
	if err != nil {
		c.Fatal(err)
	}

	return until
}
