package reconcile_test

import (
	"context"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/reconcile"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture is a Comparer with a garden and a Director in memory.
type fixture struct {
	*testing.T
	*reconcile.Comparer

	clock *clocktesting.FakePassiveClock
	// shoots are the Shoots of the project, by name. away is the error of Gardener.
	shoots map[string]*gardencorev1beta1.Shoot
	away   error
	// registered are the runtimes in Director.
	registered []director.Runtime
}

func (f *fixture) Owned(context.Context) ([]gardener.Owned, error) {
	var owned []gardener.Owned
	for _, each := range f.shoots {
		owned = append(owned, gardener.OwnedOf(each))
	}

	return owned, f.away
}

// garden hides the methods of the fixture that Director also has.
type garden struct{ *fixture }

func (g garden) Get(_ context.Context, name string) (*gardencorev1beta1.Shoot, error) {
	if found := g.shoots[name]; found != nil {
		return found, nil
	}

	return nil, failure.New(failure.NotFound, "no Shoot")
}

type registrations struct{ *fixture }

func (r registrations) List(_ context.Context, tenant, _ string) ([]director.Runtime, error) {
	if tenant != "acme" {
		return nil, director.ErrTenantUnknown
	}

	return r.registered, nil
}

func (r registrations) Get(_ context.Context, _, id string) (director.Runtime, error) {
	for _, each := range r.registered {
		if each.ID == id {
			return each, nil
		}
	}

	return director.Runtime{}, failure.New(failure.NotFound, "no registration")
}

func onEach(t *testing.T, test func(f *fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		f := &fixture{T: t, clock: clocktesting.NewFakePassiveClock(start), shoots: map[string]*gardencorev1beta1.Shoot{}}
		keys := storagetest.Keys(t)

		orders, err := operations.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		rows, err := runtimes.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		entries, err := auditlog.Open(t.Context(), db, time.Hour)
		if err != nil {
			t.Fatal(err)
		}

		f.Comparer = &reconcile.Comparer{
			DB: db, Runtimes: rows, Operations: orders, Recorder: audit.NewRecorder(entries, db, f.clock, logging.Discard()),
			Shoots: garden{f}, Director: registrations{f}, Namespace: "garden-p", Clock: f.clock,
		}
		test(f)
	})
}

// runtime returns a runtime with an order of instance i-ID.
func (f *fixture) runtime(id string) runtimes.Runtime {
	f.Helper()

	configuration, err := spec.Encode(spec.Runtime{
		Metadata: &spec.Metadata{Name: id, Labels: map[string]any{"broker_instance_id": "i-" + id}},
		ClusterConfig: &spec.ClusterConfig{GardenerConfig: &spec.Cluster{
			Name: "c-" + id, Provider: "aws", Region: "eu-central-1", KubernetesVersion: "1.35.4",
		}},
		ClientData: new("secret data"),
	})
	if err != nil {
		f.Fatal(err)
	}

	return runtimes.Runtime{
		ID: id, Tenant: "acme", SubAccount: "sub", ShootName: "c-" + id, ProvisionedBy: "provision-" + id, Configuration: configuration,
		CreatedAt: start.Add(-time.Hour),
	}
}

// accept stores the row of a runtime and an operation that ended in the given state.
func (f *fixture) accept(runtime runtimes.Runtime, kind string, state process.State, ended time.Time) {
	f.Helper()

	if err := f.DB.InTx(f.Context(), func(tx storage.Tx) error {
		if _, err := f.Runtimes.Insert(f.Context(), tx, runtime); err != nil {
			return err
		}

		if err := f.Operations.InsertSucceeded(f.Context(), tx, process.New{
			ID: runtime.ProvisionedBy, Kind: kind, InstanceID: runtime.ID, Tenant: "acme", Payload: []byte(`{"registered": true}`), At: ended,
		}); err != nil {
			return err
		}

		_, err := storage.Exec(f.Context(), tx, `UPDATE operations SET state = ? WHERE id = ?`, string(state), runtime.ProvisionedBy)

		return err
	}); err != nil {
		f.Fatal(err)
	}
}

// upgrade stores a successful upgrade of the runtime.
func (f *fixture) upgrade(runtime runtimes.Runtime, ended time.Time) {
	f.Helper()

	if err := f.DB.InTx(f.Context(), func(tx storage.Tx) error {
		return f.Operations.InsertSucceeded(f.Context(), tx, process.New{
			ID: "upgrade-" + runtime.ID, Kind: operation.KindUpgradeShoot, InstanceID: runtime.ID, Tenant: "acme", Payload: []byte(`{}`), At: ended,
		})
	}); err != nil {
		f.Fatal(err)
	}
}

// cluster adds a ready Shoot of a runtime, with its record.
func (f *fixture) cluster(runtime runtimes.Runtime) *gardencorev1beta1.Shoot {
	f.Helper()

	record, err := f.Runtimes.Record(runtime)
	if err != nil {
		f.Fatal(err)
	}

	made := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{
			Name: runtime.ShootName, Labels: map[string]string{shoot.LabelAccount: runtime.Tenant},
			Annotations: map[string]string{shoot.AnnotationRuntimeID: runtime.ID, shoot.AnnotationRecord: record, shoot.AnnotationInstanceID: "i-" + runtime.ID},
		},
		Status: gardencorev1beta1.ShootStatus{LastOperation: &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded}},
	}
	f.shoots[made.Name] = made

	return made
}

// compare reads all pages, each with the given number of entries.
func (f *fixture) compare(size int) []operatorapi.Difference {
	f.Helper()

	var all []operatorapi.Difference

	for after := ""; ; {
		page, err := f.Compare(f.Context(), operatorserver.Comparison{After: after, Limit: size})
		if err != nil {
			f.Fatal(err)
		}

		if all = append(all, page.Differences...); page.Next == "" {
			return all
		}

		after = page.Next
	}
}

// kinds maps the IDs of objects to the kinds of their differences.
func kinds(differences []operatorapi.Difference) map[string]operatorapi.DifferenceKind {
	found := map[string]operatorapi.DifferenceKind{}
	for _, each := range differences {
		found[each.ID] = each.Kind
	}

	return found
}

func TestCompare(t *testing.T) {
	onEach(t, func(f *fixture) {
		const old = -time.Hour

		// Both sides agree.
		same := f.runtime("same")
		f.accept(same, operation.KindProvisionNoInstall, process.Succeeded, start.Add(old))
		f.cluster(same)

		// An upgrade does not store that the runtime is registered.
		upgraded := f.runtime("upgraded")
		f.accept(upgraded, operation.KindProvisionNoInstall, process.Succeeded, start.Add(2*old))
		f.cluster(upgraded)
		f.upgrade(upgraded, start.Add(old))

		// In flight: an operation that has just ended, an unfinished one, a failed creation, a Shoot that is being deleted.
		f.accept(f.runtime("just"), operation.KindProvisionNoInstall, process.Succeeded, start.Add(-time.Second))
		f.accept(f.runtime("failed"), operation.KindProvisionNoInstall, process.Failed, start.Add(old))
		f.cluster(f.runtime("leaving")).DeletionTimestamp = &metav1.Time{Time: start}

		f.accept(f.runtime("gone"), operation.KindProvisionNoInstall, process.Succeeded, start.Add(old))
		// An operator skipped the step that unregisters the runtime.
		removed := f.runtime("removed")
		f.accept(removed, operation.KindProvisionNoInstall, process.Succeeded, start.Add(2*old))

		if err := f.Runtimes.MarkDeleted(f.Context(), removed.ID, start.Add(old)); err != nil {
			f.Fatal(err)
		}

		f.cluster(f.runtime("lost-1"))
		f.cluster(f.runtime("lost-2"))

		f.registered = []director.Runtime{
			{ID: "unknown", Labels: map[string]any{registration.LabelOrder: "a"}},
			{ID: "gone"},
			{ID: "removed"},
			{ID: "lost-1"},
			{ID: "just"},
			{ID: "failed"},
			{ID: "unsettled", Labels: map[string]any{registration.LabelOrder: "b"}},
		}
		if _, err := f.Runtimes.IntendRegistration(f.Context(), "acme", "b", start); err != nil {
			f.Fatal(err)
		}

		want := map[string]operatorapi.DifferenceKind{
			"gone":   operatorapi.DifferenceKindRuntimeWithoutShoot,
			"lost-1": operatorapi.DifferenceKindShootWithoutRuntime, "lost-2": operatorapi.DifferenceKindShootWithoutRuntime,
			"unknown": operatorapi.DifferenceKindRegistrationWithoutRuntime, "same": operatorapi.DifferenceKindRuntimeWithoutRegistration,
			"upgraded": operatorapi.DifferenceKindRuntimeWithoutRegistration, "removed": operatorapi.DifferenceKindRegistrationWithoutRuntime,
		}

		for _, size := range []int{1, 2, 100} {
			if diff := cmp.Diff(want, kinds(f.compare(size))); diff != "" {
				f.Errorf("pages of %d: -want +got\n%s", size, diff)
			}
		}

		for _, each := range f.compare(100) {
			if each.Meaning == "" || len(each.Commands) == 0 || strings.Contains(each.Meaning+strings.Join(each.Commands, ""), "secret data") {
				f.Errorf("a difference without meaning or command, or with the client's data: %+v", each)
			}
		}

		f.away = failure.New(failure.Transient, "Gardener is unreachable")

		page, err := f.Compare(f.Context(), operatorserver.Comparison{Limit: 10})
		if err != nil || len(page.Differences) > 0 || !cmp.Equal(page.Incomplete, []string{"Gardener: Gardener is unreachable", "Director: Gardener is unreachable"}) {
			f.Errorf("got %+v, %v", page, err)
		}
	})
}

func TestRestore(t *testing.T) {
	onEach(t, func(f *fixture) {
		asleep := f.cluster(f.runtime("lost"))
		asleep.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
		f.registered = []director.Runtime{{ID: "lost"}}

		difference := f.compare(10)[0]
		if !difference.Restorable || difference.InstanceID != "i-lost" {
			f.Fatalf("got %+v", difference)
		}

		for range 2 { // a repetition changes nothing
			if err := f.Restore(f.Context(), difference); err != nil {
				f.Fatal(err)
			}
		}

		restored, err := f.Runtimes.Get(f.Context(), f.DB.Reader(), "lost")
		if err != nil {
			f.Fatal(err)
		}

		wanted := f.runtime("lost")
		wanted.Provider, wanted.Region = "aws", "eu-central-1"

		if diff := cmp.Diff(wanted, restored); diff != "" {
			f.Errorf("the restored row: -want +got\n%s", diff)
		}

		past, err := f.Operations.OfInstance(f.Context(), f.DB.Reader(), "lost")
		if err != nil || len(past) != 2 || past[0].Kind != operation.KindHibernate || past[1].ID != "provision-lost" || past[1].State != process.Succeeded {
			f.Errorf("want the creation and the hibernation, got %+v, %v", past, err)
		}

		payload, err := f.Operations.Payload(f.Context(), f.DB.Reader(), "provision-lost")
		if err != nil || !strings.Contains(string(payload), `"registered":true`) {
			f.Errorf("the operation does not say that the runtime is registered: %v", err)
		}

		entries, err := storage.Get[int](f.Context(), f.DB.Reader(), `SELECT count(*) FROM audit WHERE action = 'restore' AND instance_id = 'lost'`)
		if err != nil || entries != 1 {
			f.Errorf("want one entry in the audit log, got %d, %v", entries, err)
		}

		if left := kinds(f.compare(10)); len(left) != 0 {
			f.Errorf("got %v", left)
		}
	})
}

func TestWhatCannotBeRestored(t *testing.T) {
	onEach(t, func(f *fixture) {
		cases := map[string]struct {
			reason string
			change func(made *gardencorev1beta1.Shoot)
			want   string
		}{
			"no record": {
				"Shoots of earlier releases have none",
				func(made *gardencorev1beta1.Shoot) { delete(made.Annotations, shoot.AnnotationRecord) }, "no record",
			},
			"changed": {
				"the seal detects changes",
				func(made *gardencorev1beta1.Shoot) { made.Annotations[shoot.AnnotationRecord] += "A" }, "cannot be read",
			},
			"moved": {
				"a record is bound to its runtime",
				func(made *gardencorev1beta1.Shoot) { made.Annotations[shoot.AnnotationRuntimeID] = "other" }, "cannot be read",
			},
			"renamed": {
				"the record of one Shoot does not restore another",
				func(made *gardencorev1beta1.Shoot) { made.Name = "c-other" }, "belongs to another Shoot",
			},
			"not ready": {
				"the restored operation says succeeded",
				func(made *gardencorev1beta1.Shoot) {
					made.Status.LastOperation.State = gardencorev1beta1.LastOperationStateProcessing
				}, "has not finished",
			},
			"taken": {
				"names of Shoots are unique",
				func(*gardencorev1beta1.Shoot) {
					usurper := f.runtime("usurper")
					usurper.ShootName = "c-lost"
					f.accept(usurper, operation.KindProvisionNoInstall, process.Failed, start.Add(-time.Hour))
				}, "another runtime, usurper",
			},
		}

		for _, name := range []string{"no record", "changed", "moved", "renamed", "not ready", "taken"} {
			test := cases[name]
			made := f.cluster(f.runtime("lost"))
			test.change(made)

			f.shoots = map[string]*gardencorev1beta1.Shoot{made.Name: made}

			found := f.compare(10)
			if len(found) == 0 || found[0].Restorable || found[0].InstanceID != "i-lost" || !strings.Contains(found[0].Reason, test.want) || len(found[0].Commands) != 3 {
				f.Errorf("%s (%s): want a reason with %q, got %+v", name, test.reason, test.want, found)

				continue
			}

			if err := f.Restore(f.Context(), found[0]); err == nil {
				f.Errorf("%s: restored", name)
			}
		}
	})
}
