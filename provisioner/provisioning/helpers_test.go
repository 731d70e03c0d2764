package provisioning

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
	"github.com/environment-broker/environment-broker/provisioner/clusterwait"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	shootName = "c-first"
	runtimeID = "runtime-1"
	poll      = 20 * time.Second
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var errLost = failure.New(failure.Transient, "the answer was lost")

// garden keeps Shoots. One of the calls to it can go wrong.
type garden struct {
	shoots  map[string]*gardencorev1beta1.Shoot
	applied int // how many Shoots were made
	retried int // how often Gardener was asked to go on

	administrators []string

	calls []string
	// broken is the number of the call that goes wrong, counted from 1: its answer is lost, or, if unsent, the call itself.
	broken int
	unsent bool
	// work, if set, is done to a Shoot before it is read: what Gardener does meanwhile.
	work func(shoot *gardencorev1beta1.Shoot)
	err  error
}

func newGarden() *garden { return &garden{shoots: map[string]*gardencorev1beta1.Shoot{}} }

// call does what a call does, unless it goes wrong.
func (g *garden) call(name string, effect func() error) error {
	g.calls = append(g.calls, name)

	if g.err != nil {
		return g.err
	}

	if wrong := len(g.calls) == g.broken; !wrong {
		return effect()
	}

	if !g.unsent {
		_ = effect() // its answer is lost
	}

	return errLost
}

func (g *garden) Apply(_ context.Context, objects *shoot.Objects) error {
	wanted := objects.Shoot

	return g.call("apply", func() error {
		existing, exists := g.shoots[wanted.Name]
		if exists && existing.Annotations[shoot.AnnotationRuntimeID] != wanted.Annotations[shoot.AnnotationRuntimeID] {
			return failure.New(failure.Conflict, "a cluster of another runtime")
		}

		if !exists {
			g.applied++
			g.shoots[wanted.Name] = wanted.DeepCopy()
		}

		return nil
	})
}

func (g *garden) Get(_ context.Context, name string) (*gardencorev1beta1.Shoot, error) {
	var found *gardencorev1beta1.Shoot

	err := g.call("get", func() error {
		existing, exists := g.shoots[name]
		if !exists {
			return failure.New(failure.NotFound, "there is no Shoot %q", name)
		}

		if g.work != nil {
			g.work(existing)
		}

		found = existing.DeepCopy()

		return nil
	})

	return found, err
}

func (g *garden) Retry(context.Context, *gardencorev1beta1.Shoot) error {
	return g.call("retry", func() error {
		g.retried++

		return nil
	})
}

// build makes the Shoot of a runtime.
func build(runtime runtimes.Runtime, _ string) (*shoot.Objects, error) {
	return &shoot.Objects{Shoot: &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Name: runtime.ShootName, Annotations: map[string]string{shoot.AnnotationRuntimeID: runtime.ID},
	}}}, nil
}

// SetAdministrators implements administrators.Clusters.
func (g *garden) SetAdministrators(_ context.Context, _ string, users []string) error {
	return g.call("administrators", func() error {
		g.administrators = users

		return nil
	})
}

func creationWait(g *garden, limit time.Duration) process.Step[operation.Data] {
	return clusterwait.Settled(clusterwait.Options{Name: "Wait_For_Cluster_Creation", Shoots: g, Poll: poll, Limit: limit})
}

func (g *garden) process() process.Process[operation.Data] {
	return Process(g.options())
}

func (g *garden) options() Options {
	return Options{
		Shoots: g, Build: build, Clusters: g, BindingsTimeout: time.Hour, DomainTimeout: time.Hour, CreationTimeout: time.Hour, Poll: poll, Limit: 24 * time.Hour,
	}
}

// with has the Shoot of the runtime in the garden, changed.
func (g *garden) with(change func(shoot *gardencorev1beta1.Shoot)) *garden {
	existing, _ := build(data().Runtime, "")
	if change != nil {
		change(existing.Shoot)
	}

	g.shoots[shootName] = existing.Shoot

	return g
}

// at is a Shoot whose last operation is in the state.
func at(state gardencorev1beta1.LastOperationState, codes ...gardencorev1beta1.ErrorCode) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) {
		shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{State: state, Progress: 42, Description: "creating DNS"}
		shoot.Status.LastErrors = nil

		if len(codes) > 0 {
			shoot.Status.LastErrors = []gardencorev1beta1.LastError{{Description: "out of luck", Codes: codes}}
		}
	}
}

func data() operation.Data {
	return operation.Data{Runtime: runtimes.Runtime{ID: runtimeID, Tenant: "tenant", ShootName: shootName, ProvisionedBy: "op-1", Configuration: json.RawMessage(`{"clusterConfig": {"administrators": ["jane@example.com"]}}`)}}
}

func newOperation(data operation.Data) operation.Operation {
	return process.NewOperation(process.Record{ID: "op-1", InstanceID: runtimeID}, data, began)
}

// stored returns the data as it is read back from the operation's row.
func stored(t *testing.T, data operation.Data) operation.Data {
	t.Helper()

	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}

	var read operation.Data
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}

	return read
}

// run runs a step once.
func run(t *testing.T, step process.Step[operation.Data], op operation.Operation) (operation.Operation, time.Duration, error) {
	t.Helper()

	return step.Run(t.Context(), op, logging.Discard())
}
