package gardenlet

import (
	"context"
	"fmt"
	"sync"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// workers bounds how many Shoots are worked on at once. A worker is held only while it writes or while a runtime starts;
	// waiting is left to the queue.
	workers = 16

	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// queue holds the names of Shoots that have to be looked at, now or later.
type queue = workqueue.TypedRateLimitingInterface[string]

// Run works until the context ends, which is no error.
func (g *Gardenlet) Run(ctx context.Context) error {
	shoots := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry))
	informer, err := g.informer(shoots)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	for range workers {
		running.Go(func() { g.work(ctx, shoots) })
	}
	<-ctx.Done()
	shoots.ShutDown()
	running.Wait()
	return nil
}

// informer puts every Shoot into the queue that is there, changes or goes.
func (g *Gardenlet) informer(shoots queue) (cache.SharedIndexInformer, error) {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &gardencorev1beta1.ShootList{}
			err := g.client.List(ctx, list, &client.ListOptions{Namespace: g.namespace, Raw: &options})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			list := &gardencorev1beta1.ShootList{}
			return g.client.Watch(ctx, list, &client.ListOptions{Namespace: g.namespace, Raw: &options})
		},
	}
	informer := cache.NewSharedIndexInformer(source, &gardencorev1beta1.Shoot{}, 0, nil)
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		g.log.WithError(err).Debug("the watch of the shoots ended and begins again")
	}); err != nil {
		return nil, fmt.Errorf("observe the watch of the shoots: %w", err)
	}
	enqueue := func(object any) {
		if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
			shoots.Add(name.Name)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: enqueue,
	}); err != nil {
		return nil, fmt.Errorf("observe the shoots: %w", err)
	}
	return informer, nil
}

// work takes Shoots from the queue until it is shut down.
func (g *Gardenlet) work(ctx context.Context, shoots queue) {
	for {
		name, shutdown := shoots.Get()
		if shutdown {
			return
		}
		g.visit(ctx, shoots, name)
		shoots.Done(name)
	}
}

func (g *Gardenlet) visit(ctx context.Context, shoots queue, name string) {
	next, err := g.reconcile(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		log := g.log.WithField("shoot", name).WithError(err)
		if apierrors.IsConflict(err) {
			log.Debug("the shoot changed meanwhile and is looked at again")
		} else {
			log.Warn("the shoot could not be reconciled and is looked at again")
		}
		shoots.AddRateLimited(name)
		return
	}
	shoots.Forget(name)
	if next > 0 {
		shoots.AddAfter(name, next)
	}
}
