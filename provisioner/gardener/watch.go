package gardener

import (
	"context"
	"errors"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// watchTimeout is the time after which the API server ends a watch, and the client starts the next one. It bounds the time
	// until a dead connection is noticed.
	watchTimeout = 5 * time.Minute
	// watchPause is the retry interval while Gardener does not respond or rejects the credentials. The informer's default
	// interval grows to a minute, which would delay the detection of ready clusters.
	watchPause = 2 * time.Second
)

// Watch calls the given function with the name of each Shoot that is created, changed or deleted, until the context ends. It
// starts with one call for every existing Shoot. All calls come from one goroutine. After a lost connection, Watch lists all
// Shoots again. It therefore does not miss changes, but may report several changes of a Shoot as one.
func (c *Client) Watch(ctx context.Context, changed func(name string)) error {
	seconds := int64(watchTimeout.Seconds())

	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			shoots := &gardencorev1beta1.ShootList{}
			err := untilAnswered(ctx, func() error {
				return c.list(ctx, shoots, &client.ListOptions{Raw: &options})
			})

			return shoots, explain(err, "listing Shoots")
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.TimeoutSeconds = &seconds

			var events watch.Interface

			err := untilAnswered(ctx, func() error {
				current := c.connection()

				begun, err := current.Watch(ctx, &gardencorev1beta1.ShootList{}, client.InNamespace(c.namespace), &client.ListOptions{Raw: &options})
				if err == nil {
					events = current.bound(begun)
				}

				return err
			})

			return events, explain(err, "watching Shoots")
		},
	}

	report := func(object any) {
		// The informer wraps the object if it missed the deletion event.
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}

		if shoot, ok := object.(*gardencorev1beta1.Shoot); ok {
			changed(shoot.Name)
		}
	}

	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &gardencorev1beta1.Shoot{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    report,
			UpdateFunc: func(_, object any) { report(object) },
			DeleteFunc: report,
		},
		Transform: slim,
	})

	informer.RunWithContext(ctx)

	return nil
}

// untilAnswered repeats a call until the API server responds, even with an error. It also repeats a call if the API server
// rejects the credentials, because an operator can renew them.
func untilAnswered(ctx context.Context, call func() error) error {
	for {
		err := call()

		var answer apierrors.APIStatus
		if err == nil || errors.As(err, &answer) && !apierrors.IsUnauthorized(err) {
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(watchPause):
		}
	}
}

// slim is the transform of the informer's cache. It drops the fields that the watch does not need, so that thousands of Shoots
// fit into memory.
func slim(object any) (any, error) {
	shoot, ok := object.(*gardencorev1beta1.Shoot)
	if !ok {
		return nil, fmt.Errorf("watching Shoots: got a %T", object)
	}

	return &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Name: shoot.Name, Namespace: shoot.Namespace, UID: shoot.UID, ResourceVersion: shoot.ResourceVersion,
	}}, nil
}
