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

// wider asks for more machines.
func wider() spec.Upgrade {
	return spec.Upgrade{
		GardenerConfig: &spec.ClusterUpgrade{
			MachineType: new("m6i.large"), AutoScalerMin: new(1), AutoScalerMax: new(7), MaxSurge: new(1),
		},
		Administrators: []string{"joe@example.com"},
	}
}

// made has a runtime whose cluster is made.
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

func TestUpgradeIsAnOperation(t *testing.T) {
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
			b.Errorf("the operation wants %+v", config)
		}

		if shown := b.shown(runtimeID); shown.AutoScalerMax != 0 {
			b.Errorf("the runtime shows %d machines before the operation has succeeded", shown.AutoScalerMax)
		}

		if err := b.store.Configured(b.Context(), runtimeID, data.Runtime.Configuration, 2); err != nil {
			b.Fatal(err)
		}

		if shown := b.shown(runtimeID); shown.AutoScalerMax != 7 {
			b.Errorf("the runtime shows %d machines once that is recorded", shown.AutoScalerMax)
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

func TestUpgradeThatIsSentAgain(t *testing.T) {
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
				b.Errorf("sent again it is operation %s, %v; want %s", results[i], errs[i], first)
			}
		}

		b.finish(first, process.Succeeded)

		if again := b.mustUpgrade("key", runtimeID); again != first {
			b.Errorf("after its end it is operation %s, want %s", again, first)
		}
	})
}

func TestOnlyOneOfManyUpgradesIsAccepted(t *testing.T) {
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
			b.Errorf("%d upgrades at the same time are accepted", accepted)
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
			"there is nothing to change", func(*bench) string { return "unknown" }, failure.NotFound, `there is no runtime "unknown" of this tenant`,
		},
		"of another tenant": {
			"what is not the caller's does not exist", func(b *bench) string {
				_, runtimeID := b.provision("stranger", "", "c-first")

				return runtimeID
			}, failure.NotFound, "of this tenant",
		},
		"being made": {
			"one operation at a time", func(b *bench) string {
				_, runtimeID := b.provision("tenant", "", "c-first")

				return runtimeID
			}, failure.Conflict, "(ProvisionNoInstall) is in progress for the runtime",
		},
		"failed": {
			"there is no cluster to change", func(b *bench) string {
				creation, runtimeID := b.provision("tenant", "", "c-first")
				b.finish(creation, process.Failed)

				return runtimeID
			}, failure.Conflict, "has no cluster, because its creation failed: provision it again",
		},
		"half removed": {
			"what is left of the cluster has to go", func(b *bench) string {
				runtimeID := b.made("c-first")
				b.finish(b.deprovision("tenant", "", runtimeID), process.Failed)

				return runtimeID
			}, failure.Conflict, "has started and failed: deprovision it again",
		},
		"removed": {
			"a runtime that is gone stays so", func(b *bench) string {
				runtimeID := b.made("c-first")
				b.finish(b.deprovision("tenant", "", runtimeID), process.Succeeded)

				if err := b.store.MarkDeleted(b.Context(), runtimeID, time.Now()); err != nil {
					b.Fatal(err)
				}

				return runtimeID
			}, failure.Conflict, "is removed",
		},
		"not possible": {
			"what no cluster can be made of is refused now", func(b *bench) string {
				runtimeID := b.made("c-first")
				b.refused.Store(failure.New(failure.Invalid, "there is no such machine"))

				return runtimeID
			}, failure.Invalid, "there is no such machine",
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
				t.Errorf("%s: a refusal leaves something behind", c.reason)
			}
		})
	}
}

// TestOperationsOfOtherRuntimesAreNotInTheWay: only its own operations decide whether a runtime can be changed, also where a newer one of
// another runtime runs.
func TestOperationsOfOtherRuntimesAreNotInTheWay(t *testing.T) {
	each(t, func(b *bench) {
		first := b.made("c-first")
		second := b.made("c-second")

		b.provision("tenant", "", "c-third")
		running := b.mustUpgrade("", second)

		if status, err := b.upgrade("", first); err != nil || status.RuntimeID != first || status.ID == running {
			b.Errorf("the change of another runtime gives %+v, %v", status, err)
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
			b.Errorf("the upgrade is %s", got)
		}

		b.end(running, process.Succeeded)
		b.finish(removal, process.Succeeded)
	})
}

func TestFailedUpgradeCanBeFollowedByAnother(t *testing.T) {
	each(t, func(b *bench) {
		runtimeID := b.made("c-first")
		b.finish(b.mustUpgrade("first", runtimeID), process.Failed)

		if shown := b.shown(runtimeID); shown.AutoScalerMax != 0 {
			b.Errorf("after the failure the runtime shows %d machines", shown.AutoScalerMax)
		}

		b.finish(b.mustUpgrade("second", runtimeID), process.Succeeded)
	})
}
