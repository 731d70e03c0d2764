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

	"github.com/environment-broker/environment-broker/internal/atomicfile"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
)

const (
	// fieldManager is the field manager of the Provisioner, so that the scenarios own the same fields as it does.
	fieldManager = "environment-broker-provisioner"

	// kubernetesVersion is the version in shoot.yaml.
	kubernetesVersion = "1.35.4"
)

//go:embed shoot.yaml
var shootText []byte

// Garden is a garden under test. It has the seed of fakegarden and a running gardenlet.
type Garden struct {
	// Client has the rights of an operator of the garden.
	Client client.WithWatch
	// Namespace contains the Shoots, the credentials and the faults of the project.
	Namespace string
	// Project is the name of the project. The technical IDs of the runtimes contain it.
	Project string
	// Patience limits the duration of an operation of a Shoot. A scenario that waits longer fails and names the last operation.
	Patience time.Duration
}

// Shoot returns a Shoot that every garden accepts. Its name and that of the project may have at most 21 characters together. Each
// call returns another copy, which the caller may change. It has one worker pool and no status.
func Shoot(namespace, name string) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{}
	if err := yaml.UnmarshalStrict(shootText, shoot); err != nil {
		panic(err) // the file is a part of the program
	}
	shoot.Namespace, shoot.Name = namespace, name
	return shoot
}

// apply writes a Shoot by server-side apply, as the Provisioner does. It leaves out the status and the creation time, which Go
// encodes even if they are empty: an apply would otherwise own them.
func (g Garden) apply(ctx context.Context, t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shoot)
	if err != nil {
		t.Fatalf("converting the shoot: %v", err)
	}
	configuration := &unstructured.Unstructured{Object: content}
	configuration.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	unstructured.RemoveNestedField(configuration.Object, "status")
	unstructured.RemoveNestedField(configuration.Object, "metadata", "creationTimestamp")
	err = g.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		t.Fatalf("applying the shoot: %v", err)
	}
}

// get reads a Shoot, which must exist. The result is the state at this moment; await follows the changes.
func (g Garden) get(ctx context.Context, t *testing.T, name string) *gardencorev1beta1.Shoot {
	t.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	if err := g.Client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, shoot); err != nil {
		t.Fatalf("reading the shoot %s: %v", name, err)
	}
	return shoot
}

// remove confirms the deletion of a Shoot, deletes it and waits until it is gone. It passes every state to observe, unless that
// is nil; the last one is the state at the removal of the last finalizer.
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

// await waits until a Shoot has reached a state and returns it. It passes every state to observe, unless that is nil. condition
// completes the sentence "waiting until …" in failures. A deletion of the Shoot fails the test.
func (g Garden) await(
	ctx context.Context, t *testing.T, name, condition string,
	observe func(*gardencorev1beta1.Shoot), reached func(*gardencorev1beta1.Shoot) bool,
) *gardencorev1beta1.Shoot {
	t.Helper()
	var found *gardencorev1beta1.Shoot
	g.watch(ctx, t, name, condition, func() {}, func(event watch.EventType, shoot *gardencorev1beta1.Shoot) bool {
		if event == watch.Deleted {
			t.Fatalf("the shoot %s was deleted while waiting until %s", name, condition)
		}
		if observe != nil {
			observe(shoot)
		}
		found = shoot
		return reached(shoot)
	})
	return found
}

// watch passes the states of a Shoot to done, starting with the present one, until that returns true. It calls act once the watch
// is open, so that it misses none of the states that follow. A watch rather than a poll: the scenarios check that no state on the
// way is wrong, such as a progress that decreases. The test fails if the watch ends before, or after Patience.
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
	t.Fatalf("timed out waiting for the shoot %s until %s; its last operation is %+v", name, condition, last)
}

// succeeded returns a condition for await: an operation on the present generation of a Shoot has succeeded. A success on an older
// generation does not count, because the gardenlet has not seen the change yet.
func succeeded(operation gardencorev1beta1.LastOperationType) func(*gardencorev1beta1.Shoot) bool {
	return func(shoot *gardencorev1beta1.Shoot) bool {
		last := shoot.Status.LastOperation
		return last != nil && last.Type == operation && last.State == gardencorev1beta1.LastOperationStateSucceeded &&
			shoot.Status.ObservedGeneration == shoot.Generation
	}
}

// injectFault makes the gardenlet inject a fault into the operations of a Shoot. The faults of other Shoots stay, so scenarios
// with different names can share a garden. The patch contains the one key that changes, even if the ConfigMap exists already.
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

// KeepPort assigns a port to the server of runtimes with the folder, for tests of restarts. Unlike a port that the server
// chooses, this one is outside the range of outgoing connections, so none takes it while the server is down. Call it before the
// first start of the server, which reads the port from the file address.
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
