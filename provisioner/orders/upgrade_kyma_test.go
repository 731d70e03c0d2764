package orders_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func kyma(version string) *spec.Kyma {
	return &spec.Kyma{
		Version: version,
		Components: []*spec.Component{{
			Component: "compass-runtime-agent", Namespace: "kyma-system",
			Configuration: []*spec.Entry{{Key: "token", Value: "hush", Secret: new(true)}},
		}},
	}
}

func orderWithKyma(name, version string) spec.Runtime {
	input := order(name)
	input.KymaConfig = kyma(version)

	return input
}

// runtimeWithKyma creates a runtime with the given Kyma version and returns its ID.
func (f *fixture) runtimeWithKyma(name, version string) string {
	f.Helper()

	status, err := f.service.Provision(f.Context(), caller("tenant", ""), orderWithKyma(name, version))
	if err != nil {
		f.Fatal(err)
	}

	f.finish(status.ID, process.Succeeded)

	return status.RuntimeID
}

func (f *fixture) upgradeKyma(key, runtimeID, version string) (operation.Status, error) {
	return f.service.UpgradeRuntime(f.Context(), caller("tenant", key), runtimeID, spec.KymaUpgrade{KymaConfig: kyma(version)})
}

func (f *fixture) rollBack(key, runtimeID string) (operation.Status, error) {
	return f.service.RollBackUpgrade(f.Context(), caller("tenant", key), runtimeID, new("rolled back"))
}

// runNewest claims the accepted operation, ends it in the state end, and returns its data. If it succeeds, its configuration
// becomes the runtime's. An err other than nil fails the test.
func (f *fixture) runNewest(status operation.Status, err error, end process.State) operation.Data {
	f.Helper()

	if err != nil {
		f.Fatal(err)
	}

	record := f.claimDue()[status.ID]

	var data operation.Data
	if err := json.Unmarshal(record.Payload, &data); err != nil {
		f.Fatal(err)
	}

	if end == process.Succeeded {
		if err := f.store.Configured(f.Context(), data.Runtime, record.Position); err != nil {
			f.Fatal(err)
		}
	}

	f.end(record, end)

	return data
}

// version returns the Kyma version in the status of the runtime.
func (f *fixture) version(runtimeID string) string {
	f.Helper()

	status, err := f.service.RuntimeStatus(f.Context(), caller("tenant", ""), runtimeID, orders.RuntimeFields{})
	if err != nil {
		f.Fatal(err)
	}

	return status.Kyma.Version
}

func TestRuntimeWithKyma(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		made, err := f.service.Provision(f.Context(), caller("tenant", ""), orderWithKyma("c-first", "1.24.0"))
		if err != nil || made.Kind != operation.KindProvision {
			f.Fatalf("the provisioning is accepted as %+v, %v", made, err)
		}

		f.finish(made.ID, process.Succeeded)

		status, err := f.service.RuntimeStatus(f.Context(), caller("tenant", ""), made.RuntimeID, orders.RuntimeFields{})
		if err != nil {
			f.Fatal(err)
		}

		want := kyma("1.24.0").WithoutSecrets()
		if diff := cmp.Diff(want, status.Kyma); diff != "" || want.Components[0].Configuration[0].Value != "" {
			f.Errorf("the status must omit the secret, -want +got:\n%s", diff)
		}

		upgraded, err := f.upgrade("", made.RuntimeID)
		if err != nil {
			f.Fatalf("upgrading its cluster: %v", err)
		}

		f.finish(upgraded.ID, process.Succeeded)

		removal := f.deprovision("tenant", "", made.RuntimeID)
		if record := f.claimDue()[removal]; record.Kind != operation.KindDeprovision {
			f.Errorf("the removal has kind %s, want %s", record.Kind, operation.KindDeprovision)
		}

		if again := f.deprovision("tenant", "", made.RuntimeID); again != removal {
			f.Errorf("the repeated removal is operation %s, want %s", again, removal)
		}
	})
}

func TestRepeatAfterFailureUsesTheNewOrder(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		first, err := f.service.Provision(f.Context(), caller("tenant", ""), orderWithKyma("c-first", "1.24.0"))
		f.runNewest(first, err, process.Failed)

		again, err := f.service.Provision(f.Context(), caller("tenant", ""), order("c-first"))
		if err != nil || again.RuntimeID != first.RuntimeID || again.Kind != operation.KindProvisionNoInstall {
			f.Errorf("without Kyma: got %+v, %v", again, err)
		}

		f.runNewest(again, err, process.Failed)

		again, err = f.service.Provision(f.Context(), caller("tenant", ""), orderWithKyma("c-first", "1.24.1"))
		if err != nil || again.RuntimeID != first.RuntimeID || again.Kind != operation.KindProvision {
			f.Errorf("with Kyma: got %+v, %v", again, err)
		}
	})
}

func TestUpgradeAndRollBackOfKyma(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		runtimeID := f.runtimeWithKyma("c-first", "1.24.0")

		accepted, err := f.upgradeKyma("up", runtimeID, "2.0.0")
		if err != nil || accepted.Kind != operation.KindUpgrade || f.version(runtimeID) != "1.24.0" {
			f.Fatalf("the upgrade is accepted as %+v, %v; until it has succeeded the runtime shows version %s", accepted, err, f.version(runtimeID))
		}

		if again, err := f.upgradeKyma("up", runtimeID, "2.0.0"); err != nil || again.ID != accepted.ID {
			f.Errorf("the repeated call: got %+v, %v", again, err)
		}

		f.runNewest(accepted, err, process.Succeeded)

		if got := f.version(runtimeID); got != "2.0.0" {
			f.Errorf("after the upgrade the runtime shows version %s", got)
		}

		cluster, err := f.upgrade("", runtimeID)
		f.runNewest(cluster, err, process.Succeeded)

		back, err := f.rollBack("back", runtimeID)
		if err != nil || back.Kind != operation.KindUpgrade {
			f.Fatalf("the rollback is accepted as %+v, %v; want a type that clients of Kyma Provisioner know", back, err)
		}

		if again, err := f.rollBack("back", runtimeID); err != nil || again.ID != back.ID {
			f.Errorf("the repeated call: got %+v, %v", again, err)
		}

		order, err := f.runNewest(back, err, process.Succeeded).Order()
		if err != nil {
			f.Fatal(err)
		}

		if diff := cmp.Diff(kyma("1.24.0"), order.KymaConfig); diff != "" {
			f.Errorf("the rollback must restore the earlier order with its secrets, -want +got:\n%s", diff)
		}

		if order.ClientData == nil || *order.ClientData != "rolled back" {
			f.Errorf("the rollback has the client data %v", order.ClientData)
		}

		if order.ClusterConfig.GardenerConfig.AutoScalerMax != 7 {
			f.Error("the rollback reverted the change of the cluster")
		}

		if _, err := f.rollBack("twice", runtimeID); !failure.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "nothing to roll back") {
			f.Errorf("a second rollback: got %v", err)
		}
	})
}

// TestUpgradeOfKubernetesWithKyma upgrades Kubernetes and Kyma in one operation, and rolls back only Kyma.
func TestUpgradeOfKubernetesWithKyma(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		input := orderWithKyma("c-first", "1.24.0")
		input.ClusterConfig.GardenerConfig.KubernetesVersion = "1.34.2"

		made, err := f.service.Provision(f.Context(), caller("tenant", ""), input)
		if err != nil {
			f.Fatal(err)
		}

		f.finish(made.ID, process.Succeeded)

		upgrade := func(key, version string) (operation.Status, error) {
			return f.service.UpgradeRuntime(f.Context(), caller("tenant", key), made.RuntimeID, spec.KymaUpgrade{
				KymaConfig: kyma("2.0.0"), ClusterConfig: &spec.ClusterVersion{KubernetesVersion: version},
			})
		}

		for version, want := range map[string]string{
			"1.33": "kubernetesVersion must not be lower than the current version 1.34.2", "1.36": "kubernetesVersion must not skip a minor version",
			"latest": "kubernetesVersion must look like",
		} {
			if _, err := upgrade("", version); !failure.Is(err, failure.Invalid) || !strings.Contains(err.Error(), want) {
				f.Errorf("Kubernetes %s: %v", version, err)
			}
		}

		accepted, err := upgrade("up", "1.35")
		if err != nil || accepted.Kind != operation.KindUpgrade {
			f.Fatalf("the upgrade is accepted as %+v, %v; want a type that clients of Kyma Provisioner know", accepted, err)
		}

		if again, err := f.upgradeKyma("up", made.RuntimeID, "2.0.0"); err != nil || again.ID != accepted.ID {
			f.Errorf("the repeated call without Kubernetes: got %+v, %v", again, err)
		}

		if record, err := f.ops.Get(f.Context(), f.ops.Reader(), accepted.ID); err != nil || record.Kind != operation.KindUpgradeRuntime {
			f.Errorf("the operation has the kind %s, %v", record.Kind, err)
		}

		order, err := f.runNewest(accepted, nil, process.Succeeded).Order()
		if got := order.ClusterConfig.GardenerConfig.KubernetesVersion; err != nil || got != "1.35" || order.KymaConfig.Version != "2.0.0" {
			f.Errorf("the order has Kubernetes %s and Kyma %s, %v", got, order.KymaConfig.Version, err)
		}

		back, err := f.rollBack("", made.RuntimeID)

		order, err = f.runNewest(back, err, process.Succeeded).Order()
		if got := order.ClusterConfig.GardenerConfig.KubernetesVersion; err != nil || got != "1.35" || order.KymaConfig.Version != "1.24.0" {
			f.Errorf("after the rollback: Kubernetes %s and Kyma %s, %v", got, order.KymaConfig.Version, err)
		}
	})
}

// TestRollBackTarget checks which version a rollback restores after a series of operations.
func TestRollBackTarget(t *testing.T) {
	upgrade := func(version string, end process.State) func(f *fixture, runtimeID string) {
		return func(f *fixture, runtimeID string) {
			status, err := f.upgradeKyma("", runtimeID, version)
			f.runNewest(status, err, end)
		}
	}
	rollBack := func(end process.State) func(f *fixture, runtimeID string) {
		return func(f *fixture, runtimeID string) {
			status, err := f.rollBack("", runtimeID)
			f.runNewest(status, err, end)
		}
	}

	for name, c := range map[string]struct {
		reason string
		past   []func(f *fixture, runtimeID string)
		want   string
	}{
		"failed":          {"a failed upgrade may have changed the cluster", []func(*fixture, string){upgrade("2", process.Failed)}, "1"},
		"second":          {"a rollback reverts the last upgrade", []func(*fixture, string){upgrade("2", process.Succeeded), upgrade("3", process.Succeeded)}, "2"},
		"second failed":   {"a rollback reverts the last upgrade", []func(*fixture, string){upgrade("2", process.Succeeded), upgrade("3", process.Failed)}, "2"},
		"roll back again": {"a failed rollback can be repeated", []func(*fixture, string){upgrade("2", process.Succeeded), rollBack(process.Failed)}, "1"},
		"upgrade after a roll back": {
			reason: "the upgrade started from the restored version",
			past:   []func(*fixture, string){upgrade("2", process.Succeeded), rollBack(process.Succeeded), upgrade("3", process.Succeeded)},
			want:   "1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			runtimeID := f.runtimeWithKyma("c-first", "1")

			for _, act := range c.past {
				act(f, runtimeID)
			}

			status, err := f.rollBack("", runtimeID)

			order, err := f.runNewest(status, err, process.Succeeded).Order()
			if err != nil || order.KymaConfig.Version != c.want {
				t.Errorf("%s: rolled back to %s, want %s, %v", c.reason, order.KymaConfig.Version, c.want, err)
			}
		})
	}
}

func TestKymaChangeIsRefused(t *testing.T) {
	asleep := gardencorev1beta1.Shoot{}
	asleep.Status.IsHibernated = true

	fallingAsleep := gardencorev1beta1.Shoot{}
	fallingAsleep.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}

	away := failure.New(failure.Transient, "Gardener is unavailable")
	unplanned := failure.New(failure.Invalid, "no release 2.0.0")

	withKyma := func(f *fixture) string { return f.runtimeWithKyma("c-first", "1.24.0") }
	upgraded := func(f *fixture) string {
		runtimeID := f.runtimeWithKyma("c-first", "1.24.0")
		status, err := f.upgradeKyma("", runtimeID, "2.0.0")
		f.runNewest(status, err, process.Succeeded)

		return runtimeID
	}

	for name, c := range map[string]struct {
		reason    string
		prepare   func(f *fixture) string
		shoot     gardencorev1beta1.Shoot
		unread    error
		unplanned error
		rollBack  bool
		kind      failure.Kind
		want      string
	}{
		"no Kyma":     {reason: "the runtime has no Kyma", prepare: func(f *fixture) string { return f.createdRuntime("c-first") }, kind: failure.Conflict, want: "was ordered without Kyma"},
		"hibernated":  {reason: "the API server is not running", prepare: withKyma, shoot: asleep, kind: failure.Conflict, want: "is hibernated: wake it up first"},
		"hibernating": {reason: "the API server is about to stop", prepare: withKyma, shoot: fallingAsleep, kind: failure.Conflict, want: "is hibernated"},
		"unavailable": {reason: "whether the cluster is hibernated is unknown", prepare: withKyma, unread: away, kind: failure.Transient, want: "Gardener is unavailable"},
		"no plan":     {reason: "an upgrade without a plan is rejected immediately", prepare: withKyma, unplanned: unplanned, kind: failure.Invalid, want: "no release"},
		"unknown":     {reason: "the runtime does not exist", prepare: func(*fixture) string { return "unknown" }, kind: failure.NotFound, want: `no runtime "unknown"`},
		"busy": {
			reason: "one operation at a time", kind: failure.Conflict, want: "(UpgradeShoot) is in progress", prepare: func(f *fixture) string {
				runtimeID := withKyma(f)
				f.mustUpgrade("", runtimeID)

				return runtimeID
			},
		},
		"never upgraded": {reason: "Kyma was never upgraded", prepare: withKyma, rollBack: true, kind: failure.Conflict, want: "there is nothing to roll back"},
		"busy upgrading": {
			reason: "the upgrade has not ended", rollBack: true, kind: failure.Conflict, want: "(Upgrade) is in progress", prepare: func(f *fixture) string {
				runtimeID := withKyma(f)
				if _, err := f.upgradeKyma("", runtimeID, "2.0.0"); err != nil {
					f.Fatal(err)
				}

				return runtimeID
			},
		},
		"hibernated before the roll back": {reason: "the API server is not running", prepare: upgraded, shoot: asleep, rollBack: true, kind: failure.Conflict, want: "is hibernated"},
		"earlier release removed":         {reason: "the release was removed meanwhile", prepare: upgraded, unplanned: unplanned, rollBack: true, kind: failure.Invalid, want: "no release"},
		"roll back of nothing": {
			reason: "the runtime does not exist", prepare: func(*fixture) string { return "unknown" }, rollBack: true, kind: failure.NotFound, want: `no runtime "unknown"`,
		},
		"removed": {
			reason: "the runtime is removed", rollBack: true, kind: failure.Conflict, want: "has been removed", prepare: func(f *fixture) string {
				runtimeID := withKyma(f)
				f.finish(f.deprovision("tenant", "", runtimeID), process.Succeeded)

				if err := f.store.MarkDeleted(f.Context(), runtimeID, time.Now()); err != nil {
					f.Fatal(err)
				}

				return runtimeID
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			runtimeID := c.prepare(f)
			f.shoot, f.getError, f.planError = c.shoot, c.unread, c.unplanned
			before := f.count("operations") + f.count("idempotency_keys")

			var err error
			if c.rollBack {
				_, err = f.rollBack("key", runtimeID)
			} else {
				_, err = f.upgradeKyma("key", runtimeID, "2.0.0")
			}

			if !failure.Is(err, c.kind) || !strings.Contains(failure.Of(err).Text, c.want) {
				t.Errorf("%s: got %v", c.reason, err)
			}

			if f.count("operations")+f.count("idempotency_keys") != before {
				t.Errorf("%s: the rejected call changed rows", c.reason)
			}
		})
	}
}

// TestUpgradeMergesComponents checks that an upgrade preserves secret values, so that clients need not send them again.
func TestUpgradeMergesComponents(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	runtimeID := f.runtimeWithKyma("c-first", "1.24.0")

	upgrade := kyma("2.0.0")
	upgrade.Components[0].Configuration = nil

	status, err := f.service.UpgradeRuntime(t.Context(), caller("tenant", ""), runtimeID, spec.KymaUpgrade{KymaConfig: upgrade})

	order, err := f.runNewest(status, err, process.Succeeded).Order()
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(kyma("2.0.0"), order.KymaConfig); diff != "" {
		t.Errorf("the upgrade must preserve the earlier secret, -want +got:\n%s", diff)
	}
}

func TestKymaUpgradeOfAMissingCluster(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	runtimeID := f.runtimeWithKyma("c-first", "1.24.0")
	f.getError = failure.New(failure.NotFound, "no such Shoot")

	if _, err := f.upgradeKyma("", runtimeID, "2.0.0"); err != nil {
		t.Errorf("a missing cluster must fail the operation and not the call: %v", err)
	}

	input := spec.KymaUpgrade{KymaConfig: &spec.Kyma{}}
	if _, err := f.service.UpgradeRuntime(t.Context(), caller("tenant", ""), runtimeID, input); !failure.Is(err, failure.Invalid) {
		t.Errorf("an invalid order: got %v", err)
	}
}
