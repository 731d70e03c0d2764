package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// removalFixture is a garden with at most one Shoot, its cluster, and the row of the runtime. One of the calls to it can fail.
type removalFixture struct {
	faults

	Shoots
	Clusters
	Runtimes

	shoot     *gardencorev1beta1.Shoot
	looks     int // the number of reads that still find the Shoot after its deletion started
	deleting  bool
	retried   int
	deletedAt time.Time // in the row

	services  int   // services that service brokers made; each cleanup call removes one
	held      bool  // service brokers have finalizers
	parts     int   // installed parts of Kyma; each call removes one
	connected int   // open connections to the cluster
	inside    error // the error of calls to the cluster
}

// newRemoval returns a fixture whose Shoot belongs to the runtime. Without an id the Shoot has no owner.
func newRemoval(id string, change func(*gardencorev1beta1.Shoot)) *removalFixture {
	w := &removalFixture{shoot: &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Name: shootName, Annotations: map[string]string{shoot.AnnotationRuntimeID: id},
	}}}

	if change != nil {
		change(w.shoot)
	}

	return w
}

// Tidy finds nothing to remove.
func (w *removalFixture) Tidy(context.Context, string, *gardencorev1beta1.Shoot) error {
	return w.call("tidy", succeed)
}

func (w *removalFixture) Delete(_ context.Context, _, id string) error {
	return w.call("delete", func() error {
		if w.shoot != nil && w.shoot.Annotations[shoot.AnnotationRuntimeID] == id {
			w.deleting = true
		}

		return nil
	})
}

// Get returns the Shoot, until it was read often enough after its deletion.
func (w *removalFixture) Get(context.Context, string) (*gardencorev1beta1.Shoot, error) {
	var found *gardencorev1beta1.Shoot

	err := w.call("get", func() error {
		switch {
		case w.deleting && w.looks <= 0:
			w.shoot = nil
		case w.deleting:
			w.looks--
		}

		if w.shoot == nil {
			return failure.New(failure.NotFound, "no such Shoot")
		}

		found = w.shoot.DeepCopy()

		return nil
	})

	return found, err
}

func (w *removalFixture) Retry(context.Context, *gardencorev1beta1.Shoot) error {
	return w.call("retry", func() error {
		w.retried++

		return nil
	})
}

func (w *removalFixture) MarkDeleted(_ context.Context, id string, at time.Time) error {
	return w.call("mark", func() error {
		if id == runtimeID && w.deletedAt.IsZero() {
			w.deletedAt = at
		}

		return nil
	})
}

// RemoveServices implements Clusters.
func (w *removalFixture) RemoveServices(_ context.Context, _, address string) (left string, err error) {
	err = w.call("services of "+address, func() error {
		w.services = max(w.services-1, 0)

		return w.inside
	})

	if w.services > 0 {
		left = fmt.Sprintf("%d of its services", w.services)
	}

	return left, err
}

// ReleaseBrokers implements Clusters.
func (w *removalFixture) ReleaseBrokers(_ context.Context, name string) error {
	return w.call("release", func() error {
		w.held = w.held && (name != shootName || w.inside != nil)

		return w.inside
	})
}

// Connect implements Clusters.
func (w *removalFixture) Connect(_ context.Context, shootName string) (*rest.Config, func(), error) {
	if err := w.call("connect", func() error { return w.inside }); err != nil {
		return nil, nil, err
	}

	w.connected++

	return &rest.Config{Host: shootName}, func() { w.connected-- }, nil
}

// Install implements installation.Installer. The tests do not call it.
func (w *removalFixture) Install(context.Context, *rest.Config, string, installation.Plan) (installation.Progress, error) {
	return installation.Progress{}, w.call("install", succeed)
}

// Uninstall implements installation.Installer.
func (w *removalFixture) Uninstall(_ context.Context, cluster *rest.Config, id string) (installation.Progress, error) {
	err := w.call("uninstall", func() error {
		if cluster.Host == shootName && id == runtimeID {
			w.parts = max(w.parts-1, 0)
		}

		return nil
	})

	return installation.Progress{Done: w.parts == 0, Message: "parts of Kyma are being removed"}, err
}

func (w *removalFixture) options() Options {
	return Options{
		Shoots: w, Runtimes: w, Clusters: w, Installer: w, ServiceBrokers: "https://service-manager.",
		Poll: poll, WorkPoll: poll, Limit: 24 * time.Hour, Timeouts: Timeouts{Deletion: time.Hour, Cleanup: 20 * time.Minute},
	}
}

func (w *removalFixture) withKyma() process.Process[operation.Data] {
	return w.options().deprovisionWithKyma()
}

func (w *removalFixture) process() process.Process[operation.Data] {
	return w.options().deprovision()
}

func newRemovalOperation(t *testing.T) operation.Operation {
	t.Helper()

	data := stored(t, operation.Data{Runtime: runtimes.Runtime{ID: runtimeID, ShootName: shootName}})

	return process.NewOperation(process.Record{ID: "op-2", InstanceID: runtimeID}, data, now)
}

// runWhole runs a removal in an engine, in a synctest bubble.
func runWhole(t *testing.T, whole process.Process[operation.Data]) process.Record {
	t.Helper()

	db := storagetest.Volatile(t)

	store, err := operations.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	engine, err := process.NewEngine(store, process.DefaultConfig(), clock.RealClock{}, logging.Discard(), whole)
	if err != nil {
		t.Fatal(err)
	}

	payload, err := json.Marshal(newRemovalOperation(t).Data)
	if err != nil {
		t.Fatal(err)
	}

	if err := db.InTx(t.Context(), func(tx storage.Tx) error {
		return store.Accept(t.Context(), tx, process.New{
			ID: "op-2", Kind: whole.Kind, InstanceID: runtimeID, Payload: payload, At: time.Now(),
		})
	}); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- engine.Run(ctx) }()

	record := process.Record{}
	for !record.State.Terminal() {
		time.Sleep(poll) // fake time

		if record, err = store.Get(t.Context(), store.Reader(), "op-2"); err != nil {
			t.Fatal(err)
		}
	}

	stop()

	if err := <-ended; err != nil {
		t.Error(err)
	}

	return record
}
