package conformance

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// fieldManager is the one under which the provisioner writes Shoots.
	fieldManager = "provisioner"

	kubernetesVersion = "1.35.4"
	provider          = "aws"
	region            = "eu-central-1"
	worker            = "cpu-worker-0"
)

// Garden is a garden under test: its objects are those of package seed, and a gardenlet works in it.
type Garden struct {
	// Client sees the garden as an operator does, who is a system administrator of the runtimes.
	Client    client.WithWatch
	Namespace string
	Project   string
	// Patience is how long a Shoot may take for one operation.
	Patience time.Duration
}

// Shoot returns a Shoot that every garden accepts; its name and that of the project have at most 21 characters together.
func Shoot(namespace, name string) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile:           &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "aws"},
			CredentialsBindingName: new(provider),
			Region:                 region,
			Kubernetes:             gardencorev1beta1.Kubernetes{Version: kubernetesVersion},
			Networking:             &gardencorev1beta1.Networking{Type: new("calico"), Nodes: new("10.250.0.0/16")},
			Provider: gardencorev1beta1.Provider{
				Type: provider,
				Workers: []gardencorev1beta1.Worker{{
					Name:    worker,
					Machine: gardencorev1beta1.Machine{Type: "m6i.large"},
					Volume:  &gardencorev1beta1.Volume{Type: new("gp3"), VolumeSize: "50Gi"},
					Minimum: 1,
					Maximum: 3,
					Zones:   []string{region + "a", region + "b"},
				}},
			},
		},
	}
}

// apply writes a Shoot by server-side apply, as the provisioner does.
func (g Garden) apply(ctx context.Context, t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	kind, err := apiutil.GVKForObject(shoot, g.Client.Scheme())
	if err != nil {
		t.Fatalf("find the kind of a shoot: %v", err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shoot)
	if err != nil {
		t.Fatalf("convert the shoot: %v", err)
	}
	configuration := &unstructured.Unstructured{Object: content}
	configuration.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(configuration.Object, "status")
	unstructured.RemoveNestedField(configuration.Object, "metadata", "creationTimestamp")
	err = g.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		t.Fatalf("apply the shoot: %v", err)
	}
}

// get reads a Shoot.
func (g Garden) get(ctx context.Context, t *testing.T, name string) *gardencorev1beta1.Shoot {
	t.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	if err := g.Client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, shoot); err != nil {
		t.Fatalf("read the shoot %s: %v", name, err)
	}
	return shoot
}

// confirmDeletion sets the annotation without which no Shoot is deleted.
func (g Garden) confirmDeletion(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	shoot := g.get(ctx, t, name)
	before := shoot.DeepCopy()
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.ConfirmationDeletion, "true")
	if err := g.Client.Patch(ctx, shoot, client.MergeFrom(before)); err != nil {
		t.Fatalf("confirm the deletion of %s: %v", name, err)
	}
}

// remove deletes a Shoot and waits until it is gone. Every state on the way is shown to observe.
func (g Garden) remove(ctx context.Context, t *testing.T, name string, observe func(*gardencorev1beta1.Shoot)) {
	t.Helper()
	g.confirmDeletion(ctx, t, name)
	g.watch(ctx, t, name, "it is gone", func() {
		if err := g.Client.Delete(ctx, Shoot(g.Namespace, name)); err != nil {
			t.Fatalf("delete the shoot %s: %v", name, err)
		}
	}, func(event watch.EventType, shoot *gardencorev1beta1.Shoot) bool {
		observe(shoot)
		return event == watch.Deleted
	})
}

// unobserved is for whom it is enough that something comes to its end.
func unobserved(*gardencorev1beta1.Shoot) {}

// await waits until a Shoot is as it should be and returns it. Every state on the way is shown to observe.
func (g Garden) await(
	ctx context.Context, t *testing.T, name, what string,
	observe func(*gardencorev1beta1.Shoot), reached func(*gardencorev1beta1.Shoot) bool,
) *gardencorev1beta1.Shoot {
	t.Helper()
	var found *gardencorev1beta1.Shoot
	g.watch(ctx, t, name, what, func() {}, func(event watch.EventType, shoot *gardencorev1beta1.Shoot) bool {
		if event == watch.Deleted {
			t.Fatalf("the shoot %s is gone, while waiting until %s", name, what)
		}
		observe(shoot)
		found = shoot
		return reached(shoot)
	})
	return found
}

// watch shows the states of a Shoot to done, beginning with the present one, until that is true or patience is at its end. It acts only
// once it watches: what follows may be over in no time.
func (g Garden) watch(
	ctx context.Context, t *testing.T, name, what string, act func(), done func(watch.EventType, *gardencorev1beta1.Shoot) bool,
) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, g.Patience)
	defer cancel()
	watching, err := g.Client.Watch(ctx, &gardencorev1beta1.ShootList{},
		client.InNamespace(g.Namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatalf("watch the shoot %s: %v", name, err)
	}
	defer watching.Stop()
	act()
	var last *gardencorev1beta1.LastOperation
	for event := range watching.ResultChan() {
		shoot, ok := event.Object.(*gardencorev1beta1.Shoot)
		if !ok {
			t.Fatalf("watch the shoot %s: unexpected event %v", name, event)
		}
		last = shoot.Status.LastOperation
		if done(event.Type, shoot) {
			return
		}
	}
	t.Fatalf("waited for the shoot %s until %s, in vain; its last operation is %+v", name, what, last)
}

// succeeded says that the present generation of a Shoot is what its runtime is.
func succeeded(operation gardencorev1beta1.LastOperationType) func(*gardencorev1beta1.Shoot) bool {
	return func(shoot *gardencorev1beta1.Shoot) bool {
		last := shoot.Status.LastOperation
		return last != nil && last.Type == operation && last.State == gardencorev1beta1.LastOperationStateSucceeded &&
			shoot.Status.ObservedGeneration == shoot.Generation
	}
}

// orderFault has the gardenlet make trouble for a Shoot of that name.
func (g Garden) orderFault(ctx context.Context, t *testing.T, configMap, shoot, fault string) {
	t.Helper()
	order := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: configMap}}
	if err := g.Client.Create(ctx, order); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("create the config map of faults: %v", err)
	}
	before := order.DeepCopy()
	order.Data = map[string]string{shoot: fault}
	if err := g.Client.Patch(ctx, order, client.MergeFrom(before)); err != nil {
		t.Fatalf("order the fault %s: %v", fault, err)
	}
}
