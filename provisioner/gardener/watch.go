package gardener

import (
	"context"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchTimeout has the API server end a watch, so that a dead connection is noticed.
const watchTimeout = 5 * time.Minute

// Watch calls changed with the name of each Shoot that appears, changes or goes, until the context ends. It lists anew after a
// lost connection, so no change is missed, but several may be told as one.
func (c *Client) Watch(ctx context.Context, changed func(name string)) error {
	seconds := int64(watchTimeout.Seconds())

	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			shoots := &gardencorev1beta1.ShootList{}
			err := c.api.List(ctx, shoots, client.InNamespace(c.namespace), &client.ListOptions{Raw: &options})

			return shoots, explain(err, "listing Shoots")
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.TimeoutSeconds = &seconds
			events, err := c.api.Watch(ctx, &gardencorev1beta1.ShootList{}, client.InNamespace(c.namespace), &client.ListOptions{Raw: &options})

			return events, explain(err, "watching Shoots")
		},
	}

	tell := func(object any) {
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
			AddFunc:    tell,
			UpdateFunc: func(_, object any) { tell(object) },
			DeleteFunc: tell,
		},
		Transform: slim,
	})

	informer.RunWithContext(ctx)

	return nil
}

// slim drops what the watch does not need, so that thousands of Shoots fit into memory.
func slim(object any) (any, error) {
	shoot, ok := object.(*gardencorev1beta1.Shoot)
	if !ok {
		return nil, fmt.Errorf("watching Shoots: got a %T", object)
	}

	return &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Name: shoot.Name, Namespace: shoot.Namespace, UID: shoot.UID, ResourceVersion: shoot.ResourceVersion,
	}}, nil
}
