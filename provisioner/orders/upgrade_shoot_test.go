package orders_test

import (
	"encoding/json"
	"slices"
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

// moreMachines returns an upgrade of the machine type, the size of the first pool and the administrators.
func moreMachines() spec.Upgrade {
	return spec.Upgrade{
		GardenerConfig: &spec.ClusterUpgrade{
			MachineType: new("m6i.large"), AutoScalerMin: new(1), AutoScalerMax: new(7), MaxSurge: new(1),
		},
		Administrators: []string{"joe@example.com"},
	}
}

// createdRuntime orders a runtime, ends its creation successfully and returns its ID.
func (f *fixture) createdRuntime(name string) string {
	f.Helper()

	creation, runtimeID := f.provision("tenant", "", name)
	f.finish(creation, process.Succeeded)

	return runtimeID
}

func (f *fixture) upgrade(key, runtimeID string) (operation.Status, error) {
	return f.service.UpgradeShoot(f.Context(), caller("tenant", key), runtimeID, moreMachines())
}

func (f *fixture) mustUpgrade(key, runtimeID string) string {
	f.Helper()

	status, err := f.upgrade(key, runtimeID)
	if err != nil {
		f.Fatal(err)
	}

	return status.ID
}

func TestUpgradeShoot(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		runtimeID := f.createdRuntime("c-first")
		woken := f.wakes.Load()

		status, err := f.upgrade("key", runtimeID)
		if err != nil {
			f.Fatal(err)
		}

		if status.Kind != operation.KindUpgradeShoot || status.State != process.Pending || status.RuntimeID != runtimeID {
			f.Errorf("accepted with status %+v", status)
		}

		if f.wakes.Load() == woken {
			f.Error("the engine was not woken")
		}

		var data operation.Data
		if err := json.Unmarshal(f.claimDue()[status.ID].Payload, &data); err != nil {
			f.Fatal(err)
		}

		wanted, err := data.Order()
		if err != nil {
			f.Fatal(err)
		}

		if config := wanted.ClusterConfig; config.GardenerConfig.AutoScalerMax != 7 || config.GardenerConfig.TargetSecret != "hush" ||
			config.Administrators[0] != "joe@example.com" {
			f.Errorf("the operation has the order %+v", config)
		}

		if shown := f.clusterOf(runtimeID); shown.AutoScalerMax != 0 {
			f.Errorf("the runtime shows %d machines before the operation has succeeded", shown.AutoScalerMax)
		}

		if err := f.store.Configured(f.Context(), data.Runtime, 2); err != nil {
			f.Fatal(err)
		}

		if shown := f.clusterOf(runtimeID); shown.AutoScalerMax != 7 {
			f.Errorf("the runtime shows %d machines after the operation recorded its order", shown.AutoScalerMax)
		}
	})
}

// clusterOf returns the order for the cluster as clients read it in the status of the runtime.
func (f *fixture) clusterOf(runtimeID string) *spec.Cluster {
	f.Helper()

	status, err := f.service.RuntimeStatus(f.Context(), caller("tenant", ""), runtimeID, orders.RuntimeFields{})
	if err != nil {
		f.Fatal(err)
	}

	return status.Cluster
}

func TestRepeatedUpgrade(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		runtimeID := f.createdRuntime("c-first")
		first := f.mustUpgrade("key", runtimeID)

		results, errs := concurrently(func(string) (string, error) {
			status, err := f.upgrade("key", runtimeID)
			if err != nil {
				return "", err
			}

			return status.ID, nil
		})
		for i := range results {
			if errs[i] != nil || results[i] != first {
				f.Errorf("the repeated call: got operation %s, %v; want %s", results[i], errs[i], first)
			}
		}

		f.finish(first, process.Succeeded)

		if again := f.mustUpgrade("key", runtimeID); again != first {
			f.Errorf("after the end: got operation %s, want %s", again, first)
		}
	})
}

func TestConcurrentUpgrades(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		runtimeID := f.createdRuntime("c-first")
		accepted := 0

		_, errs := concurrently(func(caller string) (string, error) {
			_, err := f.upgrade(caller, runtimeID)

			return "", err
		})
		for _, err := range errs {
			switch {
			case err == nil:
				accepted++
			case !failure.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "is in progress"):
				f.Errorf("rejected with %v", err)
			}
		}

		if accepted != 1 {
			f.Errorf("%d concurrent upgrades were accepted, want 1", accepted)
		}
	})
}

func TestUpgradeIsRefused(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(f *fixture) (runtimeID string)
		kind    failure.Kind
		want    string
	}{
		"unknown": {
			"the runtime does not exist", func(*fixture) string { return "unknown" }, failure.NotFound, `this tenant has no runtime "unknown"`,
		},
		"of another tenant": {
			"runtimes of other tenants are not found", func(f *fixture) string {
				_, runtimeID := f.provision("other", "", "c-first")

				return runtimeID
			}, failure.NotFound, "this tenant has no runtime",
		},
		"being made": {
			"another operation is in progress", func(f *fixture) string {
				_, runtimeID := f.provision("tenant", "", "c-first")

				return runtimeID
			}, failure.Conflict, "(ProvisionNoInstall) is in progress for the runtime",
		},
		"failed": {
			"the creation failed", func(f *fixture) string {
				creation, runtimeID := f.provision("tenant", "", "c-first")
				f.finish(creation, process.Failed)

				return runtimeID
			}, failure.Conflict, "has no cluster, because its creation failed: provision it again",
		},
		"half removed": {
			"the removal failed halfway", func(f *fixture) string {
				runtimeID := f.createdRuntime("c-first")
				f.finish(f.deprovision("tenant", "", runtimeID), process.Failed)

				return runtimeID
			}, failure.Conflict, "has failed: deprovision it again",
		},
		"removed": {
			"the runtime is removed", func(f *fixture) string {
				runtimeID := f.createdRuntime("c-first")
				f.finish(f.deprovision("tenant", "", runtimeID), process.Succeeded)

				if err := f.store.MarkDeleted(f.Context(), runtimeID, time.Now()); err != nil {
					f.Fatal(err)
				}

				return runtimeID
			}, failure.Conflict, "has been removed",
		},
		"not possible": {
			"no Shoot can be built for the upgrade", func(f *fixture) string {
				runtimeID := f.createdRuntime("c-first")
				f.checkError.Store(failure.New(failure.Invalid, "no such machine type"))

				return runtimeID
			}, failure.Invalid, "no such machine type",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			runtimeID := c.prepare(f)
			operations, keys := f.count("operations"), f.count("idempotency_keys")

			_, err := f.upgrade("key", runtimeID)
			if !failure.Is(err, c.kind) || !strings.Contains(failure.Of(err).Text, c.want) {
				t.Errorf("%s: got %v", c.reason, err)
			}

			if f.count("operations") != operations || f.count("idempotency_keys") != keys {
				t.Errorf("%s: the rejected call changed rows", c.reason)
			}
		})
	}
}

// TestOperationsOfOtherRuntimesDoNotConflict checks that a runtime can be changed while an operation of another runtime is
// running.
func TestOperationsOfOtherRuntimesDoNotConflict(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		first := f.createdRuntime("c-first")
		second := f.createdRuntime("c-second")

		f.provision("tenant", "", "c-third")
		running := f.mustUpgrade("", second)

		if status, err := f.upgrade("", first); err != nil || status.RuntimeID != first || status.ID == running {
			f.Errorf("the change of another runtime: got %+v, %v", status, err)
		}
	})
}

func TestRemovalCancelsAnUpgrade(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		runtimeID := f.createdRuntime("c-first")
		upgrade := f.mustUpgrade("", runtimeID)
		running := f.claimDue()[upgrade]
		removal := f.deprovision("tenant", "", runtimeID)

		if got := f.state(upgrade); got != process.Canceling {
			f.Errorf("the upgrade's state is %s", got)
		}

		f.end(running, process.Succeeded)
		f.finish(removal, process.Succeeded)
	})
}

func TestUpgradeAfterAFailedOne(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		runtimeID := f.createdRuntime("c-first")
		f.finish(f.mustUpgrade("first", runtimeID), process.Failed)

		if shown := f.clusterOf(runtimeID); shown.AutoScalerMax != 0 {
			f.Errorf("after the failure the runtime shows %d machines", shown.AutoScalerMax)
		}

		f.finish(f.mustUpgrade("second", runtimeID), process.Succeeded)
	})
}

// TestUpgradeShootNamesDroppedPools checks that the operation names the worker pools that its upgrade removes: in an adopted Shoot, the
// order alone does not remove them.
func TestUpgradeShootNamesDroppedPools(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		runtimeID := f.createdRuntime("c-first")
		pool := func(name string) *spec.WorkerPool {
			return &spec.WorkerPool{Name: name, MachineType: "m6i.large", AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1}
		}

		for step, upgrade := range []struct {
			pools, dropped []string
		}{{[]string{"batch", "web"}, nil}, {[]string{"web", "new"}, []string{"batch"}}, {nil, []string{"web", "new"}}} {
			pools := []*spec.WorkerPool{}
			for _, name := range upgrade.pools {
				pools = append(pools, pool(name))
			}

			wanted := moreMachines()
			wanted.GardenerConfig.AdditionalWorkers = pools

			status, err := f.service.UpgradeShoot(f.Context(), caller("tenant", ""), runtimeID, wanted)
			if err != nil {
				f.Fatal(err)
			}

			record := f.claimDue()[status.ID]

			var data operation.Data
			if err := json.Unmarshal(record.Payload, &data); err != nil {
				f.Fatal(err)
			}

			if !slices.Equal(data.DroppedPools, upgrade.dropped) {
				f.Errorf("the upgrade to %v drops %v, want %v", upgrade.pools, data.DroppedPools, upgrade.dropped)
			}

			if err := f.store.Configured(f.Context(), data.Runtime, int64(2+step)); err != nil {
				f.Fatal(err)
			}

			f.end(record, process.Succeeded)
		}
	})
}
