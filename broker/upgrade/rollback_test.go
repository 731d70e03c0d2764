package upgrade_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// ran stores an operation that has started and ended with the data, and returns its ID.
func (b *fixture) ran(kind string, state process.State, data environment.Data) string {
	b.Helper()

	operation, err := environment.NewOperation(kind, environment.Instance{ID: "one"}, nil, began)
	if err != nil {
		b.Fatal(err)
	}

	if operation.Payload, err = data.MarshalJSON(); err != nil {
		b.Fatal(err)
	}

	if err := b.DB.InTx(b.Context(), func(tx storage.Tx) error { return b.Operations.Accept(b.Context(), tx, operation) }); err != nil {
		b.Fatal(err)
	}

	for _, work := range storagetest.Claim(b, b.Operations, process.Claim{Owner: "test", Limit: 100, Now: began, Until: began.Add(time.Minute)}, kind) {
		progress := process.Progress{Record: work.Record, Release: true, Now: began}
		progress.Record.NextRun, progress.Record.State, progress.Record.FinishedAt, progress.Record.StartedAt = began, state, began, began

		if _, err := b.Operations.Save(b.Context(), progress); err != nil {
			b.Fatal(err)
		}
	}

	return operation.ID
}

// TestRollback rolls back the upgrade of an instance after other operations.
func TestRollback(t *testing.T) {
	former := environment.Instance{ID: "one", Request: environment.Request{Cluster: environment.Cluster{
		Kyma: &environment.Kyma{Version: "0.9.0", Modules: []string{"eventing"}},
	}}}
	upgraded := environment.Data{Instance: former, Upgrade: &environment.Upgrade{Version: "1.0.0"}}

	updated := func(change func(*environment.Cluster)) environment.Data {
		update := environment.UnchangedUpdate(former)
		change(&update.Cluster)

		return environment.Data{Instance: former, Update: &update}
	}

	cases := map[string]struct {
		reason string
		state  process.State // of the upgrade
		then   func(b *fixture, upgradeID string)
		text   string // empty if the rollback is accepted
	}{
		"upgraded": {"the previous Kyma is restored", process.Succeeded, func(*fixture, string) {}, ""},
		"failed":   {"the Provisioner may not know the upgrade", process.Failed, func(*fixture, string) {}, "is not a successful upgrade of Kyma"},
		"upgraded again": {"the Provisioner would roll back the newer one", process.Succeeded, func(b *fixture, _ string) {
			b.ran(environment.KindUpgradeKyma, process.Failed, upgraded)
		}, "Kyma has since been upgraded again by operation"},
		"not started in time": {"it has changed nothing", process.Succeeded, func(b *fixture, _ string) {
			id := b.ran(environment.KindUpgradeKyma, process.Failed, upgraded)
			if _, err := storage.Exec(b.Context(), b.DB.Writer(), `UPDATE operations SET problem_reason = ? WHERE id = ?`, failure.ReasonNotStarted, id); err != nil {
				b.Fatal(err)
			}
		}, ""},
		"dry run": {"a dry run changes nothing", process.Succeeded, func(b *fixture, _ string) {
			b.ran(environment.KindUpgradeKyma, process.Succeeded, environment.Data{Upgrade: &environment.Upgrade{DryRun: true}})
		}, ""},
		"cluster": {"a cluster has another version", process.Succeeded, func(b *fixture, _ string) {
			b.ran(environment.KindUpgradeCluster, process.Succeeded, environment.Data{Upgrade: &environment.Upgrade{}})
		}, ""},
		"machines": {"the update does not concern Kyma", process.Succeeded, func(b *fixture, _ string) {
			b.ran(environment.KindUpdate, process.Succeeded, updated(func(cluster *environment.Cluster) { cluster.AutoScalerMax = 9 }))
		}, ""},
		"modules": {"the rollback would restore old modules", process.Succeeded, func(b *fixture, _ string) {
			b.ran(environment.KindUpdate, process.Failed, updated(func(cluster *environment.Cluster) { cluster.Kyma = &environment.Kyma{Version: "1.0.0"} }))
		}, "modules or the credentials of Kyma have since been changed by operation"},
		"credentials": {"the rollback would restore old credentials", process.Succeeded, func(b *fixture, _ string) {
			b.ran(environment.KindUpdate, process.Succeeded,
				updated(func(cluster *environment.Cluster) { cluster.ServiceManager = &environment.ServiceManager{} }))
		}, "modules or the credentials of Kyma have since been changed by operation"},
		"resumed": {"the runtime is a new one", process.Succeeded, func(b *fixture, _ string) {
			b.ran(environment.KindSuspend, process.Succeeded, environment.Data{})
			b.ran(environment.KindResume, process.Succeeded, environment.Data{})
		}, "has since been removed or recreated by operation"},
		"rolled back": {"a rollback happens once", process.Succeeded, func(b *fixture, id string) {
			b.ran(environment.KindUpgradeKyma, process.Succeeded, environment.Data{Upgrade: &environment.Upgrade{RollsBack: id}})
		}, "has already been rolled back by operation"},
		"rollback failed": {"it can be repeated", process.Succeeded, func(b *fixture, id string) {
			b.ran(environment.KindUpgradeKyma, process.Failed, environment.Data{Upgrade: &environment.Upgrade{RollsBack: id}})
		}, ""},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, storagetest.SQLite(t))
			b.create(process.Succeeded, func(*environment.Instance) {})
			id := b.ran(environment.KindUpgradeKyma, c.state, upgraded)
			c.then(b, id)

			accepted, err := b.Upgrade(t.Context(), upgrade.Order{InstanceID: "one", Kind: environment.KindUpgradeKyma, RollsBack: id})
			if c.text != "" {
				if !failure.Is(err, failure.Invalid) || !strings.Contains(failure.Of(err).Text, c.text) {
					t.Errorf("%s: got %v", c.reason, err)
				}

				return
			}

			if err != nil || accepted.Versions != (upgrade.Versions{From: "1.0.0", To: "0.9.0"}) {
				t.Fatalf("%s: got %+v, %v", c.reason, accepted, err)
			}

			payload, err := b.Operations.Payload(t.Context(), b.DB.Reader(), accepted.OperationID)
			if err != nil {
				t.Fatal(err)
			}

			var data environment.Data
			if err := data.UnmarshalJSON(payload); err != nil {
				t.Fatal(err)
			}

			want := environment.Upgrade{Version: "0.9.0", RollsBack: id, Former: former.Request.Cluster.Kyma}
			if diff := cmp.Diff(&want, data.Upgrade); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// TestRollbackByAnotherInstaller checks that only the Kyma of the Provisioner is rolled back, and only an upgrade that exists.
func TestRollbackByAnotherInstaller(t *testing.T) {
	for name, c := range map[string]struct {
		installer environment.KymaInstaller
		text      string
	}{
		"Reconciler":        {environment.InstallerReconciler, "was not installed by the Provisioner"},
		"Lifecycle Manager": {environment.InstallerLifecycleManager, "was not installed by the Provisioner"},
		"no upgrade":        {environment.InstallerProvisioner, "has since been removed or recreated by operation"},
	} {
		b := newFixture(t, storagetest.SQLite(t))
		b.create(process.Succeeded, func(instance *environment.Instance) {
			instance.Request.Cluster.Kyma.Installer = c.installer
		})

		_, err := b.Upgrade(t.Context(), upgrade.Order{InstanceID: "one", Kind: environment.KindUpgradeKyma, RollsBack: "x"})
		if text := failure.Of(err).Text; !strings.Contains(text, c.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
