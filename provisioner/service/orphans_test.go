package service

import (
	"context"
	"errors"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// orphanFixture is a fake garden with clusters and the rows of their runtimes. Each cluster is named after the ID of its runtime.
type orphanFixture struct {
	*testing.T

	garden *fakegarden.Memory
	rows   *runtimes.Store
	db     *storage.DB
}

func newOrphanFixture(t *testing.T, names ...string) orphanFixture {
	t.Helper()

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: t.TempDir(), ClusterCreation: time.Millisecond, Log: logging.Discard()})
	if err != nil {
		t.Fatal(err)
	}

	db := storagetest.SQLite(t)

	rows, err := runtimes.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	o := orphanFixture{T: t, garden: memory, rows: rows, db: db}
	for _, name := range names {
		o.add(name)
	}

	return o
}

func (o orphanFixture) add(name string) {
	o.Helper()

	built, err := shoot.Build(shoot.Runtime{ID: name, OperationID: "op", Tenant: "acme", Config: &spec.Cluster{
		Name: name, KubernetesVersion: "1.35.4", Provider: "gcp", TargetSecret: "gcp", Region: "europe-west3", MachineType: "n2-standard-4",
		DiskType: new("pd-balanced"), VolumeSizeGB: new(50), WorkerCIDR: "10.250.0.0/16", AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1,
		ProviderSpecificConfig: &spec.Provider{GCPConfig: &spec.GCP{Zones: []string{"europe-west3-a"}}},
	}}, shoot.Options{Namespace: o.garden.Namespace()})
	if err != nil {
		o.Fatal(err)
	}

	if err := gardener.New(o.garden.Client(), o.garden.Namespace()).Apply(o.Context(), built); err != nil {
		o.Fatal(err)
	}

	if err := o.db.InTx(o.Context(), func(tx storage.Tx) error {
		_, err := o.rows.Insert(o.Context(), tx, runtimes.Runtime{ID: name, ShootName: name, Configuration: []byte("{}"), CreatedAt: time.Now()})

		return err
	}); err != nil {
		o.Fatal(err)
	}
}

// markDeleted records that the runtimes are deleted. It does not delete their Shoots.
func (o orphanFixture) markDeleted(names ...string) {
	o.Helper()

	for _, name := range names {
		if err := o.rows.MarkDeleted(o.Context(), name, time.Now()); err != nil {
			o.Fatal(err)
		}
	}
}

// remaining returns the names of the Shoots in the garden.
func (o orphanFixture) remaining() []string {
	o.Helper()

	shoots := &gardencorev1beta1.ShootList{}
	if err := o.garden.Client().List(o.Context(), shoots); err != nil {
		o.Fatal(err)
	}

	var names []string
	for _, each := range shoots.Items {
		names = append(names, each.Name)
	}

	return names
}

// removeOrphans removes orphans once. The garden rejects the deletion of the cluster named refused, or none if it is empty.
func (o orphanFixture) removeOrphans(refused string) error {
	api := interceptor.NewClient(o.garden.Client(), interceptor.Funcs{
		Delete: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if object.GetName() == refused {
				return errors.New("deletion forbidden")
			}

			return api.Delete(ctx, object, options...)
		},
	})

	return Orphans{Runtimes: o.rows, Shoots: gardener.New(api, o.garden.Namespace()), Log: logging.Discard()}.remove(o.Context())
}

func TestOrphansAreRemoved(t *testing.T) {
	o := newOrphanFixture(t, "c-live", "c-one", "c-two")
	o.markDeleted("c-one", "c-two")

	if err := o.removeOrphans(""); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"c-live"}, o.remaining()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRefusedOrphanDoesNotBlockOthers checks that a refused deletion of one orphan is reported and does not prevent the deletion
// of the others.
func TestRefusedOrphanDoesNotBlockOthers(t *testing.T) {
	for _, refused := range []string{"c-one", "c-two", "c-three"} {
		o := newOrphanFixture(t, "c-one", "c-three", "c-two")
		o.markDeleted("c-one", "c-two", "c-three")

		if err := o.removeOrphans(refused); err == nil {
			t.Errorf("%s: the failed deletion was not reported", refused)
		}

		if diff := cmp.Diff([]string{refused}, o.remaining()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
