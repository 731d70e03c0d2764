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

// kyma is an order of Kyma.
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

// installed has a runtime on which that version of Kyma is installed.
func (b *bench) installed(name, version string) string {
	b.Helper()

	status, err := b.service.Provision(b.Context(), caller("tenant", ""), orderWithKyma(name, version))
	if err != nil {
		b.Fatal(err)
	}

	b.finish(status.ID, process.Succeeded)

	return status.RuntimeID
}

func (b *bench) upgradeKyma(key, runtimeID, version string) (operation.Status, error) {
	return b.service.UpgradeRuntime(b.Context(), caller("tenant", key), runtimeID, spec.KymaUpgrade{KymaConfig: kyma(version)})
}

func (b *bench) rollBack(key, runtimeID string) (operation.Status, error) {
	return b.service.RollBackUpgrade(b.Context(), caller("tenant", key), runtimeID)
}

// carry lets the newest operation run to its end, and records what it did if it succeeds. It returns what the operation knew.
func (b *bench) carry(status operation.Status, err error, end process.State) operation.Data {
	b.Helper()

	if err != nil {
		b.Fatal(err)
	}

	record := b.begin()[status.ID]

	var data operation.Data
	if err := json.Unmarshal(record.Payload, &data); err != nil {
		b.Fatal(err)
	}

	if end == process.Succeeded {
		if err := b.store.Configured(b.Context(), record.InstanceID, data.Runtime.Configuration, record.Position); err != nil {
			b.Fatal(err)
		}
	}

	b.end(record, end)

	return data
}

// version returns the version of Kyma in the status of the runtime.
func (b *bench) version(runtimeID string) string {
	b.Helper()

	status, err := b.service.RuntimeStatus(b.Context(), caller("tenant", ""), runtimeID, orders.RuntimeFields{})
	if err != nil {
		b.Fatal(err)
	}

	return status.Kyma.Version
}

func TestRuntimeWithKyma(t *testing.T) {
	each(t, func(b *bench) {
		made, err := b.service.Provision(b.Context(), caller("tenant", ""), orderWithKyma("c-first", "1.24.0"))
		if err != nil || made.Kind != operation.KindProvision {
			b.Fatalf("provisioned as %+v, %v", made, err)
		}

		b.finish(made.ID, process.Succeeded)

		status, err := b.service.RuntimeStatus(b.Context(), caller("tenant", ""), made.RuntimeID, orders.RuntimeFields{})
		if err != nil {
			b.Fatal(err)
		}

		want := kyma("1.24.0").WithoutSecrets()
		if diff := cmp.Diff(want, status.Kyma); diff != "" || want.Components[0].Configuration[0].Value != "" {
			b.Errorf("told without the secret, -want +got:\n%s", diff)
		}

		upgraded, err := b.upgrade("", made.RuntimeID)
		if err != nil {
			b.Fatalf("its cluster cannot be changed: %v", err)
		}

		b.finish(upgraded.ID, process.Succeeded)

		removal := b.deprovision("tenant", "", made.RuntimeID)
		if record := b.begin()[removal]; record.Kind != operation.KindDeprovision {
			b.Errorf("removed by %s, want %s", record.Kind, operation.KindDeprovision)
		}

		if again := b.deprovision("tenant", "", made.RuntimeID); again != removal {
			b.Errorf("asked again it is operation %s, want %s", again, removal)
		}
	})
}

func TestFailedOrderIsCarriedOutAsItIsOrderedNow(t *testing.T) {
	each(t, func(b *bench) {
		first, err := b.service.Provision(b.Context(), caller("tenant", ""), orderWithKyma("c-first", "1.24.0"))
		b.carry(first, err, process.Failed)

		again, err := b.service.Provision(b.Context(), caller("tenant", ""), order("c-first"))
		if err != nil || again.RuntimeID != first.RuntimeID || again.Kind != operation.KindProvisionNoInstall {
			b.Errorf("without Kyma it is %+v, %v", again, err)
		}

		b.carry(again, err, process.Failed)

		again, err = b.service.Provision(b.Context(), caller("tenant", ""), orderWithKyma("c-first", "1.24.1"))
		if err != nil || again.RuntimeID != first.RuntimeID || again.Kind != operation.KindProvision {
			b.Errorf("with Kyma it is %+v, %v", again, err)
		}
	})
}

func TestUpgradeOfKymaAndItsRollBack(t *testing.T) {
	each(t, func(b *bench) {
		runtimeID := b.installed("c-first", "1.24.0")

		accepted, err := b.upgradeKyma("up", runtimeID, "2.0.0")
		if err != nil || accepted.Kind != operation.KindUpgrade || b.version(runtimeID) != "1.24.0" {
			b.Fatalf("upgraded as %+v, %v, before that is done the runtime has %s", accepted, err, b.version(runtimeID))
		}

		if again, err := b.upgradeKyma("up", runtimeID, "2.0.0"); err != nil || again.ID != accepted.ID {
			b.Errorf("sent again it is %+v, %v", again, err)
		}

		b.carry(accepted, err, process.Succeeded)

		if got := b.version(runtimeID); got != "2.0.0" {
			b.Errorf("once that is done the runtime has %s", got)
		}

		cluster, err := b.upgrade("", runtimeID)
		b.carry(cluster, err, process.Succeeded)

		back, err := b.rollBack("back", runtimeID)
		if err != nil || back.Kind != operation.KindUpgrade {
			b.Fatalf("rolled back as %+v, %v; want a type that former clients know", back, err)
		}

		if again, err := b.rollBack("back", runtimeID); err != nil || again.ID != back.ID {
			b.Errorf("sent again it is %+v, %v", again, err)
		}

		order, err := b.carry(back, err, process.Succeeded).Order()
		if err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(kyma("1.24.0"), order.KymaConfig); diff != "" {
			b.Errorf("what was installed before comes back with its secrets, -want +got:\n%s", diff)
		}

		if order.ClusterConfig.GardenerConfig.AutoScalerMax != 7 {
			b.Error("the change of the cluster is rolled back too")
		}

		if _, err := b.rollBack("twice", runtimeID); !failure.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "nothing to roll back") {
			b.Errorf("what is rolled back already gives %v", err)
		}
	})
}

// TestRollBackOf checks what a roll back restores after a series of operations.
func TestRollBackOf(t *testing.T) {
	upgrade := func(version string, end process.State) func(b *bench, runtimeID string) {
		return func(b *bench, runtimeID string) {
			status, err := b.upgradeKyma("", runtimeID, version)
			b.carry(status, err, end)
		}
	}
	rollBack := func(end process.State) func(b *bench, runtimeID string) {
		return func(b *bench, runtimeID string) {
			status, err := b.rollBack("", runtimeID)
			b.carry(status, err, end)
		}
	}

	for name, c := range map[string]struct {
		reason string
		past   []func(b *bench, runtimeID string)
		want   string
	}{
		"failed":          {"a failed upgrade may have left anything", []func(*bench, string){upgrade("2", process.Failed)}, "1"},
		"second":          {"the last upgrade counts", []func(*bench, string){upgrade("2", process.Succeeded), upgrade("3", process.Succeeded)}, "2"},
		"second failed":   {"the last upgrade counts", []func(*bench, string){upgrade("2", process.Succeeded), upgrade("3", process.Failed)}, "2"},
		"roll back again": {"one that failed may be tried again", []func(*bench, string){upgrade("2", process.Succeeded), rollBack(process.Failed)}, "1"},
		"upgrade after a roll back": {
			reason: "it found what was rolled back to",
			past:   []func(*bench, string){upgrade("2", process.Succeeded), rollBack(process.Succeeded), upgrade("3", process.Succeeded)},
			want:   "1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, storagetest.SQLite(t))
			runtimeID := b.installed("c-first", "1")

			for _, act := range c.past {
				act(b, runtimeID)
			}

			status, err := b.rollBack("", runtimeID)

			order, err := b.carry(status, err, process.Succeeded).Order()
			if err != nil || order.KymaConfig.Version != c.want {
				t.Errorf("%s: back to %s, want %s, %v", c.reason, order.KymaConfig.Version, c.want, err)
			}
		})
	}
}

func TestChangeOfKymaIsRefused(t *testing.T) {
	asleep := gardencorev1beta1.Shoot{}
	asleep.Status.IsHibernated = true

	fallingAsleep := gardencorev1beta1.Shoot{}
	fallingAsleep.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}

	away := failure.New(failure.Transient, "Gardener is away")
	unplanned := failure.New(failure.Invalid, "there is no release 2.0.0")

	withKyma := func(b *bench) string { return b.installed("c-first", "1.24.0") }
	upgraded := func(b *bench) string {
		runtimeID := b.installed("c-first", "1.24.0")
		status, err := b.upgradeKyma("", runtimeID, "2.0.0")
		b.carry(status, err, process.Succeeded)

		return runtimeID
	}

	for name, c := range map[string]struct {
		reason    string
		prepare   func(b *bench) string
		shoot     gardencorev1beta1.Shoot
		unread    error
		unplanned error
		rollBack  bool
		kind      failure.Kind
		want      string
	}{
		"no Kyma":        {reason: "there is nothing to upgrade", prepare: func(b *bench) string { return b.made("c-first") }, kind: failure.Conflict, want: "was ordered without Kyma"},
		"asleep":         {reason: "nobody answers in it", prepare: withKyma, shoot: asleep, kind: failure.Conflict, want: "is hibernated: wake it up first"},
		"falling asleep": {reason: "soon nobody answers in it", prepare: withKyma, shoot: fallingAsleep, kind: failure.Conflict, want: "is hibernated"},
		"away":           {reason: "nobody knows whether it sleeps", prepare: withKyma, unread: away, kind: failure.Transient, want: "Gardener is away"},
		"no plan":        {reason: "what nobody can install is refused at once", prepare: withKyma, unplanned: unplanned, kind: failure.Invalid, want: "there is no release"},
		"unknown":        {reason: "there is nothing to upgrade", prepare: func(*bench) string { return "unknown" }, kind: failure.NotFound, want: `no runtime "unknown"`},
		"busy": {
			reason: "one operation at a time", kind: failure.Conflict, want: "(UpgradeShoot) is in progress", prepare: func(b *bench) string {
				runtimeID := withKyma(b)
				b.mustUpgrade("", runtimeID)

				return runtimeID
			},
		},
		"never upgraded": {reason: "there is nothing to put back", prepare: withKyma, rollBack: true, kind: failure.Conflict, want: "there is nothing to roll back"},
		"busy upgrading": {
			reason: "what runs has to end first", rollBack: true, kind: failure.Conflict, want: "(Upgrade) is in progress", prepare: func(b *bench) string {
				runtimeID := withKyma(b)
				if _, err := b.upgradeKyma("", runtimeID, "2.0.0"); err != nil {
					b.Fatal(err)
				}

				return runtimeID
			},
		},
		"rolled back asleep": {reason: "nobody answers in it", prepare: upgraded, shoot: asleep, rollBack: true, kind: failure.Conflict, want: "is hibernated"},
		"no former release":  {reason: "the release has gone meanwhile", prepare: upgraded, unplanned: unplanned, rollBack: true, kind: failure.Invalid, want: "there is no release"},
		"roll back of nothing": {
			reason: "what is not the caller's does not exist", prepare: func(*bench) string { return "unknown" }, rollBack: true, kind: failure.NotFound, want: `no runtime "unknown"`,
		},
		"removed": {
			reason: "a runtime that is gone stays so", rollBack: true, kind: failure.Conflict, want: "is removed", prepare: func(b *bench) string {
				runtimeID := withKyma(b)
				b.finish(b.deprovision("tenant", "", runtimeID), process.Succeeded)

				if err := b.store.MarkDeleted(b.Context(), runtimeID, time.Now()); err != nil {
					b.Fatal(err)
				}

				return runtimeID
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, storagetest.SQLite(t))
			runtimeID := c.prepare(b)
			b.shoot, b.unread, b.unplanned = c.shoot, c.unread, c.unplanned
			before := b.count("operations") + b.count("idempotency_keys")

			var err error
			if c.rollBack {
				_, err = b.rollBack("key", runtimeID)
			} else {
				_, err = b.upgradeKyma("key", runtimeID, "2.0.0")
			}

			if !failure.Is(err, c.kind) || !strings.Contains(failure.Of(err).Text, c.want) {
				t.Errorf("%s: got %v", c.reason, err)
			}

			if b.count("operations")+b.count("idempotency_keys") != before {
				t.Errorf("%s: something is left behind", c.reason)
			}
		})
	}
}

// TestUpgradeIsLaidOverWhatIsThere: a client need not send again what it does not know any more.
func TestUpgradeIsLaidOverWhatIsThere(t *testing.T) {
	b := newBench(t, storagetest.SQLite(t))
	runtimeID := b.installed("c-first", "1.24.0")

	upgrade := kyma("2.0.0")
	upgrade.Components[0].Configuration = nil

	status, err := b.service.UpgradeRuntime(t.Context(), caller("tenant", ""), runtimeID, spec.KymaUpgrade{KymaConfig: upgrade})

	order, err := b.carry(status, err, process.Succeeded).Order()
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(kyma("2.0.0"), order.KymaConfig); diff != "" {
		t.Errorf("the secret of before stays, -want +got:\n%s", diff)
	}
}

func TestUpgradeOfAClusterThatIsGone(t *testing.T) {
	b := newBench(t, storagetest.SQLite(t))
	runtimeID := b.installed("c-first", "1.24.0")
	b.unread = failure.New(failure.NotFound, "there is no Shoot")

	if _, err := b.upgradeKyma("", runtimeID, "2.0.0"); err != nil {
		t.Errorf("what is wrong with it the operation tells: %v", err)
	}

	input := spec.KymaUpgrade{KymaConfig: &spec.Kyma{}}
	if _, err := b.service.UpgradeRuntime(t.Context(), caller("tenant", ""), runtimeID, input); !failure.Is(err, failure.Invalid) {
		t.Errorf("an order that is wrong gives %v", err)
	}
}
