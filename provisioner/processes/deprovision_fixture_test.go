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

// removalFixture is a garden with at most one Shoot, the cluster of the Shoot, and the row of the runtime.
type removalFixture struct {
	faults

	Shoots
	Clusters
	Runtimes

	shoot     *gardencorev1beta1.Shoot
	reads     int // number of reads that find the Shoot after its deletion has started
	deleting  bool
	retried   int
	deletedAt time.Time // the time in the row

	services     int   // service instances in the cluster; each cleanup call removes one
	finalizers   bool  // whether the service brokers have finalizers
	parts        int   // installed parts of Kyma; each call to Uninstall removes one
	connected    int   // open connections to the cluster
	clusterError error // the error of all calls to the cluster
}

// newRemoval returns a fixture whose Shoot belongs to the runtime with the given ID. change, if not nil, modifies the Shoot.
func newRemoval(id string, change func(*gardencorev1beta1.Shoot)) *removalFixture {
	f := &removalFixture{shoot: &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Name: shootName, Annotations: map[string]string{shoot.AnnotationRuntimeID: id},
	}}}

	if change != nil {
		change(f.shoot)
	}

	return f
}

// Tidy implements Shoots. The fixture has no objects other than the Shoot.
func (f *removalFixture) Tidy(context.Context, string, *gardencorev1beta1.Shoot) error {
	return f.call("tidy", succeed)
}

func (f *removalFixture) Delete(_ context.Context, _, id string) error {
	return f.call("delete", func() error {
		if f.shoot != nil && f.shoot.Annotations[shoot.AnnotationRuntimeID] == id {
			f.deleting = true
		}

		return nil
	})
}

// Get implements Shoots. After the deletion has been requested, it still returns the Shoot for a configured number of reads.
func (f *removalFixture) Get(context.Context, string) (*gardencorev1beta1.Shoot, error) {
	var found *gardencorev1beta1.Shoot

	err := f.call("get", func() error {
		switch {
		case f.deleting && f.reads <= 0:
			f.shoot = nil
		case f.deleting:
			f.reads--
		}

		if f.shoot == nil {
			return failure.New(failure.NotFound, "no such Shoot")
		}

		found = f.shoot.DeepCopy()

		return nil
	})

	return found, err
}

func (f *removalFixture) Retry(context.Context, *gardencorev1beta1.Shoot) error {
	return f.call("retry", func() error {
		f.retried++

		return nil
	})
}

func (f *removalFixture) MarkDeleted(_ context.Context, id string, at time.Time) error {
	return f.call("mark", func() error {
		if id == runtimeID && f.deletedAt.IsZero() {
			f.deletedAt = at
		}

		return nil
	})
}

func (f *removalFixture) RemoveServices(_ context.Context, _, address string) (left string, err error) {
	err = f.call("services of "+address, func() error {
		f.services = max(f.services-1, 0)

		return f.clusterError
	})

	if f.services > 0 {
		left = fmt.Sprintf("%d of its services", f.services)
	}

	return left, err
}

func (f *removalFixture) ReleaseBrokers(_ context.Context, name string) error {
	return f.call("release", func() error {
		f.finalizers = f.finalizers && (name != shootName || f.clusterError != nil)

		return f.clusterError
	})
}

func (f *removalFixture) Connect(_ context.Context, shootName string) (*rest.Config, func(), error) {
	if err := f.call("connect", func() error { return f.clusterError }); err != nil {
		return nil, nil, err
	}

	f.connected++

	return &rest.Config{Host: shootName}, func() { f.connected-- }, nil
}

// Install implements installation.Installer. The tests do not call it.
func (f *removalFixture) Install(context.Context, installation.Target, installation.Plan) (installation.Progress, error) {
	return installation.Progress{}, f.call("install", succeed)
}

func (f *removalFixture) Uninstall(_ context.Context, target installation.Target) (installation.Progress, error) {
	err := f.call("uninstall", func() error {
		if target.Cluster.Host == shootName && target.RuntimeID == runtimeID {
			f.parts = max(f.parts-1, 0)
		}

		return nil
	})

	return installation.Progress{Done: f.parts == 0, Message: "parts of Kyma are being removed"}, err
}

func (f *removalFixture) options() Options {
	return Options{
		Shoots: f, Runtimes: f, Clusters: f, Installer: f, ServiceBrokers: "https://service-manager.",
		Poll: poll, WorkPoll: poll, Limit: 24 * time.Hour, Timeouts: Timeouts{Deletion: time.Hour, Cleanup: 20 * time.Minute},
	}
}

func (f *removalFixture) withKyma() process.Process[operation.Data] {
	return f.options().deprovisionWithKyma()
}

func (f *removalFixture) process() process.Process[operation.Data] {
	return f.options().deprovision()
}

func newRemovalOperation(t *testing.T) operation.Operation {
	t.Helper()

	data := stored(t, operation.Data{Runtime: runtimes.Runtime{ID: runtimeID, ShootName: shootName}})

	return process.NewOperation(process.Record{ID: "op-2", InstanceID: runtimeID}, data, now)
}

// runInEngine runs a removal in an engine until it ends, and returns its record. It needs the fake clock of a synctest bubble.
func runInEngine(t *testing.T, whole process.Process[operation.Data]) process.Record {
	t.Helper()

	db := storagetest.SQLite(t)

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
