package crash

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// creation, change and deletion are the times that Gardener takes to create, change and delete a cluster.
	creation = 6 * time.Second
	change   = 4 * time.Second
	deletion = 4 * time.Second
)

// gardener simulates Gardener in fake time. It reconciles the Shoots of one scenario and counts the created clusters.
type gardener struct {
	*testing.T
	client.WithWatch

	memory  *fakegarden.Memory
	mutex   sync.Mutex
	created int // number of clusters created so far
	peak    int // maximum number of simultaneous clusters
}

func newGardener(t *testing.T, memory *fakegarden.Memory) *gardener {
	t.Helper()

	g := &gardener{T: t, memory: memory}
	g.WithWatch = interceptor.NewClient(memory.Client(), interceptor.Funcs{Apply: g.apply})

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))

	var reconciling sync.WaitGroup

	changes, err := g.Watch(ctx, &gardencorev1beta1.ShootList{}, client.InNamespace(g.memory.Namespace()))
	if err != nil {
		t.Fatal(err)
	}

	reconciling.Go(func() {
		time.Sleep(130 * time.Millisecond) // prevents reconciliations at the same time as other events, because the order of simultaneous events is random
		g.reconcileShoots(ctx, changes)
	})
	t.Cleanup(func() {
		stop()
		reconciling.Wait()
		g.deleteAll()
	})

	return g
}

// apply applies an object. If this creates a cluster, it counts the cluster.
func (g *gardener) apply(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	before := len(g.shoots())

	if err := c.Apply(ctx, object, options...); err != nil {
		return err
	}

	if now := len(g.shoots()); now > before {
		g.mutex.Lock()
		defer g.mutex.Unlock()

		g.created++
		g.peak = max(g.peak, now)
	}

	return nil
}

func (g *gardener) shoots() []gardencorev1beta1.Shoot {
	g.Helper()

	return harness.Shoots(g.T, g.memory)
}

// count returns the number of clusters that were created so far, the highest number that existed at the same time, and the number
// of Shoots that remain.
func (g *gardener) count() (created, peak, remaining int) {
	g.Helper()

	remaining = len(g.shoots())

	g.mutex.Lock()
	defer g.mutex.Unlock()

	return g.created, g.peak, remaining
}

// reconcileShoots reconciles all Shoots until the context ends. It reads the Shoots from a watch, because a list call takes
// real time.
func (g *gardener) reconcileShoots(ctx context.Context, changes watch.Interface) {
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()

	known := map[string]*gardencorev1beta1.Shoot{}

	for {
		select {
		case change, open := <-changes.ResultChan():
			if !open {
				return
			}

			if shoot, ok := change.Object.(*gardencorev1beta1.Shoot); !ok {
				g.Errorf("watching Shoots: %s: %v", change.Type, change.Object)
			} else if known[shoot.Name] = shoot; change.Type == watch.Deleted {
				delete(known, shoot.Name)
			}
		case <-ticker.C:
			for _, shoot := range known {
				if err := g.reconcile(ctx, shoot.DeepCopy()); err != nil && !apierrors.IsConflict(err) {
					g.Errorf("reconciling the Shoot %s: %v", shoot.Name, err)
				}
			}
		}
	}
}

func (g *gardener) reconcile(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	switch {
	case shoot.DeletionTimestamp != nil && time.Since(shoot.DeletionTimestamp.Time) > deletion:
		return g.finishDeletion(ctx, shoot)
	case shoot.DeletionTimestamp != nil:
		return g.report(ctx, shoot, gardencorev1beta1.LastOperationTypeDelete, gardencorev1beta1.LastOperationStateProcessing)
	case len(shoot.Finalizers) == 0:
		before := shoot.DeepCopy()
		shoot.Finalizers = []string{gardencorev1beta1.GardenerName}
		shoot.Spec.DNS = &gardencorev1beta1.DNS{Domain: new(shoot.Name + ".example.com")}

		return g.Patch(ctx, shoot, client.MergeFrom(before))
	case isCreated(shoot):
		return g.reconcileChange(ctx, shoot)
	case time.Since(shoot.CreationTimestamp.Time) > creation:
		return g.report(ctx, shoot, gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationStateSucceeded)
	default:
		return g.report(ctx, shoot, gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationStateProcessing)
	}
}

// isCreated reports whether the creation of the cluster has succeeded.
func isCreated(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation

	return last != nil && (last.Type == gardencorev1beta1.LastOperationTypeReconcile || last.State == gardencorev1beta1.LastOperationStateSucceeded)
}

// reconcileChange applies a change of the Shoot to its cluster.
func (g *gardener) reconcileChange(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	last := shoot.Status.LastOperation

	switch {
	case shoot.Status.ObservedGeneration < shoot.Generation:
		shoot.Status.LastOperation = nil // otherwise, report would ignore a change that follows another change

		return g.report(ctx, shoot, gardencorev1beta1.LastOperationTypeReconcile, gardencorev1beta1.LastOperationStateProcessing)
	case last.State == gardencorev1beta1.LastOperationStateProcessing && time.Since(last.LastUpdateTime.Time) > change:
		hibernation := shoot.Spec.Hibernation
		shoot.Status.IsHibernated = hibernation != nil && hibernation.Enabled != nil && *hibernation.Enabled

		return g.report(ctx, shoot, gardencorev1beta1.LastOperationTypeReconcile, gardencorev1beta1.LastOperationStateSucceeded)
	default:
		return nil
	}
}

func (g *gardener) report(ctx context.Context, shoot *gardencorev1beta1.Shoot, doing gardencorev1beta1.LastOperationType,
	state gardencorev1beta1.LastOperationState,
) error {
	if last := shoot.Status.LastOperation; last != nil && last.Type == doing && last.State == state {
		return nil
	}

	progress := int32(50)
	if state == gardencorev1beta1.LastOperationStateSucceeded {
		progress = 100
	}

	shoot.Status.ObservedGeneration = shoot.Generation
	shoot.Status.TechnicalID = "shoot--" + shoot.Name
	shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: doing, State: state, Progress: progress, Description: fmt.Sprintf("%s %s", doing, state), LastUpdateTime: metav1.Now(),
	}

	return g.Status().Update(ctx, shoot)
}

// finishDeletion completes the deletion of a cluster by removing the finalizers of its Shoot.
func (g *gardener) finishDeletion(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	if err := g.report(ctx, shoot, gardencorev1beta1.LastOperationTypeDelete, gardencorev1beta1.LastOperationStateSucceeded); err != nil {
		return err
	}

	before := shoot.DeepCopy()
	shoot.Finalizers = nil
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.ConfirmationDeletion, "true")

	return client.IgnoreNotFound(g.Patch(ctx, shoot, client.MergeFrom(before)))
}

// deleteAll deletes the objects of this scenario, so that the next scenario starts with an empty garden.
func (g *gardener) deleteAll() {
	ctx := context.Background()

	for _, shoot := range g.shoots() {
		if err := g.finishDeletion(ctx, &shoot); err != nil {
			g.Fatal(err)
		}

		if err := client.IgnoreNotFound(g.Delete(ctx, &shoot)); err != nil {
			g.Fatal(err)
		}
	}

	for _, each := range g.configMaps() {
		if err := g.Delete(ctx, &each); err != nil {
			g.Fatal(err)
		}
	}
}

// configMaps returns the ConfigMaps of the Shoots. The Provisioner labels them with the ID of the runtime.
func (g *gardener) configMaps() []corev1.ConfigMap {
	g.Helper()

	list := &corev1.ConfigMapList{}
	if err := g.List(context.Background(), list, client.InNamespace(g.memory.Namespace()), client.HasLabels{shoot.LabelRuntimeID}); err != nil {
		g.Fatal(err)
	}

	return list.Items
}

// behind returns a garden client that sends its requests through the proxy of a replica.
func (g *gardener) behind(proxy *crashtest.Proxy) client.WithWatch {
	return interceptor.NewClient(g.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return proxy.Call(ctx, "get", func(ctx context.Context) error { return c.Get(ctx, key, object, options...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return proxy.Call(ctx, "list", func(ctx context.Context) error { return c.List(ctx, list, options...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return proxy.Call(ctx, "create", func(ctx context.Context) error { return c.Create(ctx, object, options...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			return proxy.Call(ctx, "apply", func(ctx context.Context) error { return c.Apply(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return proxy.Call(ctx, "update", func(ctx context.Context) error { return c.Update(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return proxy.Call(ctx, "patch", func(ctx context.Context) error { return c.Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return proxy.Call(ctx, "delete", func(ctx context.Context) error { return c.Delete(ctx, object, options...) })
		},
	})
}
