package conformance

import (
	"context"
	_ "embed"
	"path/filepath"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
)

const (
	// fieldManager is the Provisioner's field manager, so the scenarios own the same fields as the Provisioner.
	fieldManager = "environment-broker-provisioner"

	// kubernetesVersion is the Kubernetes version in shoot.yaml.
	kubernetesVersion = "1.35.4"
)

//go:embed shoot.yaml
var shootText []byte

// Garden is a garden under test. It contains the initial objects of fakegarden (seed.yaml), and its gardenlet is running.
type Garden struct {
	// Client has the rights of a garden operator.
	Client client.WithWatch
	// Namespace contains the Shoots, credentials and faults of the project.
	Namespace string
	// Project is the name of the project. It is part of the technical IDs of the runtimes.
	Project string
	// Patience limits how long a scenario waits for a Shoot to reach a state. When this time has elapsed, the scenario fails and
	// reports the last operation.
	Patience time.Duration
}

// Shoot returns a Shoot that every garden accepts, with one worker pool and no status. The Shoot's name and the project's name
// together may have at most 21 characters. The caller may modify the result.
func Shoot(namespace, name string) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{}
	if err := yaml.UnmarshalStrict(shootText, shoot); err != nil {
		panic(err) // the file is embedded
	}
	shoot.Namespace, shoot.Name = namespace, name
	return shoot
}

// apply writes a Shoot as tryApply does, and fails the test if the garden rejects it.
func (g Garden) apply(ctx context.Context, t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	if err := g.tryApply(ctx, shoot); err != nil {
		t.Fatalf("applying the shoot: %v", err)
	}
}

// tryApply writes a Shoot by server-side apply, as the Provisioner does. It removes the status and the creation time first: they are
// encoded even if they are empty, and the field manager would own them.
func (g Garden) tryApply(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shoot)
	if err != nil {
		return err
	}
	configuration := &unstructured.Unstructured{Object: content}
	configuration.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	unstructured.RemoveNestedField(configuration.Object, "status")
	unstructured.RemoveNestedField(configuration.Object, "metadata", "creationTimestamp")
	return g.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), client.FieldOwner(fieldManager), client.ForceOwnership)
}

// get returns the current state of a Shoot, which must exist.
func (g Garden) get(ctx context.Context, t *testing.T, name string) *gardencorev1beta1.Shoot {
	t.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	if err := g.Client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, shoot); err != nil {
		t.Fatalf("reading the shoot %s: %v", name, err)
	}
	return shoot
}

// remove confirms the deletion of a Shoot, deletes it and waits until it is gone. It passes every state to observe unless observe
// is nil; the last state is the one in which the last finalizer was removed.
func (g Garden) remove(ctx context.Context, t *testing.T, name string, observe func(*gardencorev1beta1.Shoot)) {
	t.Helper()
	shoot := g.get(ctx, t, name)
	before := shoot.DeepCopy()
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.ConfirmationDeletion, "true")
	if err := g.Client.Patch(ctx, shoot, client.MergeFrom(before)); err != nil {
		t.Fatalf("confirming the deletion of %s: %v", name, err)
	}
	g.watch(ctx, t, name, "it is gone", func() {
		if err := g.Client.Delete(ctx, Shoot(g.Namespace, name)); err != nil {
			t.Fatalf("deleting the shoot %s: %v", name, err)
		}
	}, func(event watch.EventType, shoot *gardencorev1beta1.Shoot) bool {
		if observe != nil {
			observe(shoot)
		}
		return event == watch.Deleted
	})
}

// await waits until reached returns true for a Shoot and returns this Shoot. It passes every state to observe unless observe is
// nil. condition completes the sentence "waiting until …" in failure messages. If the Shoot is deleted, the test fails.
func (g Garden) await(
	ctx context.Context, t *testing.T, name, condition string,
	observe func(*gardencorev1beta1.Shoot), reached func(*gardencorev1beta1.Shoot) bool,
) *gardencorev1beta1.Shoot {
	t.Helper()
	var found *gardencorev1beta1.Shoot
	g.watch(ctx, t, name, condition, func() {}, func(event watch.EventType, shoot *gardencorev1beta1.Shoot) bool {
		if event == watch.Deleted {
			t.Fatalf("shoot %s was deleted while the test was waiting until %s", name, condition)
		}
		if observe != nil {
			observe(shoot)
		}
		found = shoot
		return reached(shoot)
	})
	return found
}

// watch passes the states of a Shoot to done, starting with the current one, until done returns true. It calls act after it has
// opened the watch, so it sees every state that act causes. It uses a watch instead of polling because the scenarios check every
// intermediate state, for example that the progress never decreases. If the watch ends early or takes longer than Patience, the
// test fails.
func (g Garden) watch(
	ctx context.Context, t *testing.T, name, condition string, act func(), done func(watch.EventType, *gardencorev1beta1.Shoot) bool,
) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, g.Patience)
	defer cancel()
	watching, err := g.Client.Watch(ctx, &gardencorev1beta1.ShootList{},
		client.InNamespace(g.Namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatalf("watching the shoot %s: %v", name, err)
	}
	defer watching.Stop()
	act()
	var last *gardencorev1beta1.LastOperation
	for event := range watching.ResultChan() {
		shoot, ok := event.Object.(*gardencorev1beta1.Shoot)
		if !ok {
			t.Fatalf("watching the shoot %s: unexpected event %v", name, event)
		}
		last = shoot.Status.LastOperation
		if done(event.Type, shoot) {
			return
		}
	}
	t.Fatalf("shoot %s: timed out waiting until %s; its last operation is %+v", name, condition, last)
}

// succeeded returns a condition for await: the operation has succeeded on the current generation of the Shoot. A success on an
// older generation is not enough, because the gardenlet has not seen the latest change yet.
func succeeded(operation gardencorev1beta1.LastOperationType) func(*gardencorev1beta1.Shoot) bool {
	return func(shoot *gardencorev1beta1.Shoot) bool {
		last := shoot.Status.LastOperation
		return last != nil && last.Type == operation && last.State == gardencorev1beta1.LastOperationStateSucceeded &&
			shoot.Status.ObservedGeneration == shoot.Generation
	}
}

// injectFault injects a fault into the operations of a Shoot. The patch contains only the key of this Shoot and leaves the faults
// of other Shoots unchanged, so scenarios with different Shoot names can share a garden.
func (g Garden) injectFault(ctx context.Context, t *testing.T, shoot string, fault gardenlet.Fault) {
	t.Helper()
	faults := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: gardenlet.FaultsConfigMap}}
	if err := g.Client.Create(ctx, faults); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("creating the config map of faults: %v", err)
	}
	before := faults.DeepCopy()
	faults.Data = map[string]string{shoot: string(fault)}
	if err := g.Client.Patch(ctx, faults, client.MergeFrom(before)); err != nil {
		t.Fatalf("injecting the fault %s: %v", fault, err)
	}
}

// KeepPort gives the runtimes.Server with the folder dir a fixed port, for restart tests. The port is outside the ephemeral port
// range, so no outgoing connection uses it while the server is down; a port that the server chooses itself has no such guarantee.
// Call KeepPort before the server first starts, because the server reads its port from dir/address.
func KeepPort(t *testing.T, dir string) {
	t.Helper()
	port, err := freeport.Draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "address"), []byte(freeport.Address(port))); err != nil {
		t.Fatal(err)
	}
}
