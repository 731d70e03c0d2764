package service

import (
	"context"
	"errors"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
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

// orphanage is a garden with clusters whose names are the ids of their runtimes.
type orphanage struct {
	*testing.T

	garden *fakegarden.Memory
	rows   *runtimes.Store
	db     *storage.DB
}

func newOrphanage(t *testing.T, names ...string) orphanage {
	t.Helper()

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: t.TempDir(), ClusterCreation: time.Millisecond, Log: logging.Discard()})
	if err != nil {
		t.Fatal(err)
	}

	db := storagetest.Volatile(t)

	rows, err := runtimes.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	o := orphanage{T: t, garden: memory, rows: rows, db: db}
	for _, name := range names {
		o.add(name)
	}

	return o
}

func (o orphanage) add(name string) {
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

// gone marks the runtimes as deleted.
func (o orphanage) gone(names ...string) {
	o.Helper()

	for _, name := range names {
		if err := o.rows.MarkDeleted(o.Context(), name, time.Now()); err != nil {
			o.Fatal(err)
		}
	}
}

// left returns the names of the remaining clusters.
func (o orphanage) left() []string {
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

// check removes orphans from a Gardener that refuses to delete the named cluster.
func (o orphanage) check(refused string) error {
	api := interceptor.NewClient(o.garden.Client(), interceptor.Funcs{
		Delete: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if object.GetName() == refused {
				return errors.New("deletion forbidden")
			}

			return api.Delete(ctx, object, options...)
		},
	})

	return orphanRemover{
		runtimes: o.rows, shoots: gardener.New(api, o.garden.Namespace()), clock: clock.RealClock{}, log: logging.Discard(),
	}.check(o.Context())
}

func TestOrphansAreRemoved(t *testing.T) {
	o := newOrphanage(t, "c-live", "c-one", "c-two")
	o.gone("c-one", "c-two")

	if err := o.check(""); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"c-live"}, o.left()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRefusedOrphanDoesNotBlockOthers: an orphan that Gardener refuses to delete is logged, and the others are removed.
func TestRefusedOrphanDoesNotBlockOthers(t *testing.T) {
	for _, refused := range []string{"c-one", "c-two", "c-three"} {
		o := newOrphanage(t, "c-one", "c-three", "c-two")
		o.gone("c-one", "c-two", "c-three")

		if err := o.check(refused); err == nil {
			t.Errorf("%s: the refusal was not reported", refused)
		}

		if diff := cmp.Diff([]string{refused}, o.left()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
