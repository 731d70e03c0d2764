package deprovisioning

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	shootName = "c-first"
	runtimeID = "runtime-1"
	poll      = 20 * time.Second
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var errLost = failure.New(failure.Transient, "the answer was lost")

// world is a garden with at most one Shoot, and the row of the runtime. One of the calls to it can go wrong.
type world struct {
	shoot     *gardencorev1beta1.Shoot
	looks     int // how often the Shoot is still there after its deletion was asked for
	deleting  bool
	retried   int
	deletedAt time.Time // in the row

	calls []string
	// broken is the number of the call that goes wrong, counted from 1: its answer is lost, or, if unsent, the call itself.
	broken int
	unsent bool
	err    error
}

// newWorld has the cluster of the runtime with the id; an empty one is nobody's.
func newWorld(id string, change func(*gardencorev1beta1.Shoot)) *world {
	w := &world{shoot: &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Name: shootName, Annotations: map[string]string{shoot.AnnotationRuntimeID: id},
	}}}

	if change != nil {
		change(w.shoot)
	}

	return w
}

// call does what a call does, unless it goes wrong.
func (w *world) call(name string, effect func() error) error {
	w.calls = append(w.calls, name)

	if w.err != nil {
		return w.err
	}

	if wrong := len(w.calls) == w.broken; !wrong {
		return effect()
	}

	if !w.unsent {
		_ = effect() // its answer is lost
	}

	return errLost
}

// Tidy finds nothing beside the Shoot.
func (w *world) Tidy(context.Context, string, *gardencorev1beta1.Shoot) error {
	return w.call("tidy", func() error { return nil })
}

func (w *world) Delete(_ context.Context, _, id string) error {
	return w.call("delete", func() error {
		if w.shoot != nil && w.shoot.Annotations[shoot.AnnotationRuntimeID] == id {
			w.deleting = true
		}

		return nil
	})
}

// Get lets the Shoot go when it was looked at often enough.
func (w *world) Get(context.Context, string) (*gardencorev1beta1.Shoot, error) {
	var found *gardencorev1beta1.Shoot

	err := w.call("get", func() error {
		if w.deleting && w.looks == 0 {
			w.shoot = nil
		}

		if w.shoot == nil {
			return failure.New(failure.NotFound, "there is no Shoot")
		}

		w.looks--
		found = w.shoot.DeepCopy()

		return nil
	})

	return found, err
}

func (w *world) Retry(context.Context, *gardencorev1beta1.Shoot) error {
	return w.call("retry", func() error {
		w.retried++

		return nil
	})
}

func (w *world) MarkDeleted(_ context.Context, id string, at time.Time) error {
	return w.call("mark", func() error {
		if id == runtimeID && w.deletedAt.IsZero() {
			w.deletedAt = at
		}

		return nil
	})
}

func (w *world) process() process.Process[operation.Data] {
	return Process(Options{
		Shoots: w, Runtimes: w, Now: func() time.Time { return now }, DeletionTimeout: time.Hour, Poll: poll, Limit: 24 * time.Hour,
	})
}

func newOperation(t *testing.T) operation.Operation {
	t.Helper()

	text, err := json.Marshal(operation.Data{Runtime: runtimes.Runtime{ID: runtimeID, ShootName: shootName}})
	if err != nil {
		t.Fatal(err)
	}

	var stored operation.Data
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}

	return process.NewOperation(process.Record{ID: "op-2", InstanceID: runtimeID}, stored, now)
}

// run runs a step once.
func run(t *testing.T, step process.Step[operation.Data], op operation.Operation) (operation.Operation, time.Duration, error) {
	t.Helper()

	return step.Run(t.Context(), op, logging.Discard())
}
