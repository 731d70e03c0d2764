package processes

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// creationFixture is a garden with any number of Shoots, and their clusters.
type creationFixture struct {
	faults

	Shoots
	Clusters

	shoots  map[string]*gardencorev1beta1.Shoot
	applied int // number of created Shoots
	retried int // number of calls to Retry

	administrators []string
	// onGet, if not nil, changes a Shoot before each read, as Gardener does between two polls.
	onGet func(shoot *gardencorev1beta1.Shoot)
}

func newGarden() *creationFixture {
	return &creationFixture{shoots: map[string]*gardencorev1beta1.Shoot{}}
}

func (g *creationFixture) Apply(_ context.Context, objects *shoot.Objects) error {
	wanted := objects.Shoot

	return g.call("apply", func() error {
		existing, exists := g.shoots[wanted.Name]
		if exists && existing.Annotations[shoot.AnnotationRuntimeID] != wanted.Annotations[shoot.AnnotationRuntimeID] {
			return failure.New(failure.Conflict, "the cluster belongs to another runtime")
		}

		if !exists {
			g.applied++
			g.shoots[wanted.Name] = wanted.DeepCopy()
		}

		return nil
	})
}

func (g *creationFixture) Get(_ context.Context, name string) (*gardencorev1beta1.Shoot, error) {
	var found *gardencorev1beta1.Shoot

	err := g.call("get", func() error {
		existing, exists := g.shoots[name]
		if !exists {
			return failure.New(failure.NotFound, "no Shoot %q", name)
		}

		if g.onGet != nil {
			g.onGet(existing)
		}

		found = existing.DeepCopy()

		return nil
	})

	return found, err
}

func (g *creationFixture) Retry(context.Context, *gardencorev1beta1.Shoot) error {
	return g.call("retry", func() error {
		g.retried++

		return nil
	})
}

// buildShoot returns a minimal Shoot for the runtime.
func buildShoot(runtime runtimes.Runtime, _ string) (*shoot.Objects, error) {
	return &shoot.Objects{Shoot: &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Name: runtime.ShootName, Annotations: map[string]string{shoot.AnnotationRuntimeID: runtime.ID},
	}}}, nil
}

func (g *creationFixture) SetAdministrators(ctx context.Context, _ string, users []string, confirm func(context.Context) error) error {
	return g.call("administrators", func() error {
		if err := confirm(ctx); err != nil {
			return err
		}

		g.administrators = users

		return nil
	})
}

func creationWait(g *creationFixture, limit time.Duration) process.RunFunc[operation.Data] {
	return g.options().waitForShoot(limit, nil)
}

func (g *creationFixture) process() process.Process[operation.Data] {
	return g.options().provision()
}

func (g *creationFixture) options() Options {
	return Options{
		Shoots: g, Build: buildShoot, Clusters: g, Poll: poll, Limit: 24 * time.Hour, WorkPoll: poll,
		Timeouts: Timeouts{Bindings: time.Hour, Domain: time.Hour, Creation: time.Hour, InstallationStart: time.Minute, Installation: time.Hour},
	}
}

// with adds the runtime's Shoot to the garden. change, if not nil, modifies the Shoot first.
func (g *creationFixture) with(change func(shoot *gardencorev1beta1.Shoot)) *creationFixture {
	existing, _ := buildShoot(creationData().Runtime, "")
	if change != nil {
		change(existing.Shoot)
	}

	g.shoots[shootName] = existing.Shoot

	return g
}

// lastOperation returns a change that sets the state and the error codes of the last operation of a Shoot.
func lastOperation(state gardencorev1beta1.LastOperationState, codes ...gardencorev1beta1.ErrorCode) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) {
		shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{State: state, Progress: 42, Description: "creating DNS"}
		shoot.Status.LastErrors = nil

		if len(codes) > 0 {
			shoot.Status.LastErrors = []gardencorev1beta1.LastError{{Description: "out of luck", Codes: codes}}
		}
	}
}

func creationData() operation.Data {
	return operation.Data{Runtime: runtimes.Runtime{
		ID: runtimeID, Tenant: "tenant", ShootName: shootName, ProvisionedBy: "op-1",
		Configuration: json.RawMessage(`{"clusterConfig": {"administrators": ["jane@example.com"]}}`),
	}}
}

func newCreation(data operation.Data) operation.Operation {
	return process.NewOperation(process.Record{ID: "op-1", InstanceID: runtimeID}, data, now)
}

// stored returns the data after encoding and decoding, as a later attempt reads it from the row of the operation.
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
