package orders_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// wider returns an upgrade to more machines.
func wider() spec.Upgrade {
	return spec.Upgrade{
		GardenerConfig: &spec.ClusterUpgrade{
			MachineType: new("m6i.large"), AutoScalerMin: new(1), AutoScalerMax: new(7), MaxSurge: new(1),
		},
		Administrators: []string{"joe@example.com"},
	}
}

// made returns a runtime whose cluster was created.
func (b *bench) made(name string) string {
	b.Helper()

	creation, runtimeID := b.provision("tenant", "", name)
	b.finish(creation, process.Succeeded)

	return runtimeID
}

func (b *bench) upgrade(key, runtimeID string) (operation.Status, error) {
	return b.service.UpgradeShoot(b.Context(), caller("tenant", key), runtimeID, wider())
}

func (b *bench) mustUpgrade(key, runtimeID string) string {
	b.Helper()

	status, err := b.upgrade(key, runtimeID)
	if err != nil {
		b.Fatal(err)
	}

	return status.ID
}

func TestUpgradeShoot(t *testing.T) {
	each(t, func(b *bench) {
		runtimeID := b.made("c-first")
		woken := b.woken.Load()

		status, err := b.upgrade("key", runtimeID)
		if err != nil {
			b.Fatal(err)
		}

		if status.Kind != operation.KindUpgradeShoot || status.State != process.Pending || status.RuntimeID != runtimeID {
			b.Errorf("accepted as %+v", status)
		}

		if b.woken.Load() == woken {
			b.Error("the engine was not woken")
		}

		var data operation.Data
		if err := json.Unmarshal(b.begin()[status.ID].Payload, &data); err != nil {
			b.Fatal(err)
		}

		wanted, err := data.Order()
		if err != nil {
			b.Fatal(err)
		}

		if config := wanted.ClusterConfig; config.GardenerConfig.AutoScalerMax != 7 || config.GardenerConfig.TargetSecret != "hush" ||
			config.Administrators[0] != "joe@example.com" {
			b.Errorf("the operation has the order %+v", config)
		}

		if shown := b.shown(runtimeID); shown.AutoScalerMax != 0 {
			b.Errorf("the runtime shows %d machines before the operation has succeeded", shown.AutoScalerMax)
		}

		if err := b.store.Configured(b.Context(), runtimeID, data.Runtime.Configuration, 2); err != nil {
			b.Fatal(err)
		}

		if shown := b.shown(runtimeID); shown.AutoScalerMax != 7 {
			b.Errorf("the runtime shows %d machines after the operation recorded its order", shown.AutoScalerMax)
		}
	})
}

// shown returns the configuration of the runtime as clients read it.
func (b *bench) shown(runtimeID string) *spec.Cluster {
	b.Helper()

	status, err := b.service.RuntimeStatus(b.Context(), caller("tenant", ""), runtimeID, orders.RuntimeFields{ClusterConfig: true})
	if err != nil {
		b.Fatal(err)
	}

	return status.Cluster
}

func TestRepeatedUpgrade(t *testing.T) {
	each(t, func(b *bench) {
		runtimeID := b.made("c-first")
		first := b.mustUpgrade("key", runtimeID)

		results, errs := together(func(string) (string, error) {
			status, err := b.upgrade("key", runtimeID)
			if err != nil {
				return "", err
			}

			return status.ID, nil
		})
		for i := range results {
			if errs[i] != nil || results[i] != first {
				b.Errorf("the repeated call: got operation %s, %v; want %s", results[i], errs[i], first)
			}
		}

		b.finish(first, process.Succeeded)

		if again := b.mustUpgrade("key", runtimeID); again != first {
			b.Errorf("after the end: got operation %s, want %s", again, first)
		}
	})
}

func TestConcurrentUpgrades(t *testing.T) {
	each(t, func(b *bench) {
		runtimeID := b.made("c-first")
		accepted := 0

		_, errs := together(func(caller string) (string, error) {
			_, err := b.upgrade(caller, runtimeID)

			return "", err
		})
		for _, err := range errs {
			switch {
			case err == nil:
				accepted++
			case !failure.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "is in progress"):
				b.Errorf("refused with %v", err)
			}
		}

		if accepted != 1 {
			b.Errorf("%d concurrent upgrades were accepted, want 1", accepted)
		}
	})
}

func TestUpgradeIsRefused(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(b *bench) (runtimeID string)
		kind    failure.Kind
		want    string
	}{
		"unknown": {
			"the runtime does not exist", func(*bench) string { return "unknown" }, failure.NotFound, `there is no runtime "unknown" of this tenant`,
		},
		"of another tenant": {
			"runtimes of other tenants are not found", func(b *bench) string {
				_, runtimeID := b.provision("other", "", "c-first")

				return runtimeID
			}, failure.NotFound, "of this tenant",
		},
		"being made": {
			"another operation is in progress", func(b *bench) string {
				_, runtimeID := b.provision("tenant", "", "c-first")

				return runtimeID
			}, failure.Conflict, "(ProvisionNoInstall) is in progress for the runtime",
		},
		"failed": {
			"the creation failed", func(b *bench) string {
				creation, runtimeID := b.provision("tenant", "", "c-first")
				b.finish(creation, process.Failed)

				return runtimeID
			}, failure.Conflict, "has no cluster, because its creation failed: provision it again",
		},
		"half removed": {
			"the removal failed halfway", func(b *bench) string {
				runtimeID := b.made("c-first")
				b.finish(b.deprovision("tenant", "", runtimeID), process.Failed)

				return runtimeID
			}, failure.Conflict, "has started and failed: deprovision it again",
		},
		"removed": {
			"the runtime is removed", func(b *bench) string {
				runtimeID := b.made("c-first")
				b.finish(b.deprovision("tenant", "", runtimeID), process.Succeeded)

				if err := b.store.MarkDeleted(b.Context(), runtimeID, time.Now()); err != nil {
					b.Fatal(err)
				}

				return runtimeID
			}, failure.Conflict, "is removed",
		},
		"not possible": {
			"no Shoot can be built for the upgrade", func(b *bench) string {
				runtimeID := b.made("c-first")
				b.refused.Store(failure.New(failure.Invalid, "no such machine type"))

				return runtimeID
			}, failure.Invalid, "no such machine type",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, storagetest.SQLite(t))
			runtimeID := c.prepare(b)
			operations, keys := b.count("operations"), b.count("idempotency_keys")

			_, err := b.upgrade("key", runtimeID)
			if !failure.Is(err, c.kind) || !strings.Contains(failure.Of(err).Text, c.want) {
				t.Errorf("%s: got %v", c.reason, err)
			}

			if b.count("operations") != operations || b.count("idempotency_keys") != keys {
				t.Errorf("%s: the refused call changed rows", c.reason)
			}
		})
	}
}

// TestOperationsOfOtherRuntimesDoNotConflict: a newer operation of another runtime must not refuse a change.
func TestOperationsOfOtherRuntimesDoNotConflict(t *testing.T) {
	each(t, func(b *bench) {
		first := b.made("c-first")
		second := b.made("c-second")

		b.provision("tenant", "", "c-third")
		running := b.mustUpgrade("", second)

		if status, err := b.upgrade("", first); err != nil || status.RuntimeID != first || status.ID == running {
			b.Errorf("the change of another runtime: got %+v, %v", status, err)
		}
	})
}

func TestRemovalCancelsAnUpgrade(t *testing.T) {
	each(t, func(b *bench) {
		runtimeID := b.made("c-first")
		upgrade := b.mustUpgrade("", runtimeID)
		running := b.begin()[upgrade]
		removal := b.deprovision("tenant", "", runtimeID)

		if got := b.state(upgrade); got != process.Canceling {
			b.Errorf("the upgrade's state is %s", got)
		}

		b.end(running, process.Succeeded)
		b.finish(removal, process.Succeeded)
	})
}

func TestUpgradeAfterAFailedOne(t *testing.T) {
	each(t, func(b *bench) {
		runtimeID := b.made("c-first")
		b.finish(b.mustUpgrade("first", runtimeID), process.Failed)

		if shown := b.shown(runtimeID); shown.AutoScalerMax != 0 {
			b.Errorf("after the failure the runtime shows %d machines", shown.AutoScalerMax)
		}

		b.finish(b.mustUpgrade("second", runtimeID), process.Succeeded)
	})
}
