package fakegarden

import (
	"context"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Calls counts the calls of a client by the verbs of the API server's audit log: get, list, watch, create, update, patch, delete.
// Server-side apply is a patch.
type Calls struct {
	mutex sync.Mutex
	verbs map[string]int
}

// Counted returns a client that counts its calls, and the counts. Calls count before they are sent, so failed calls count too. Updates and
// patches of subresources do not count, because the project sends none.
func Counted(of client.WithWatch) (client.WithWatch, *Calls) {
	calls := &Calls{verbs: map[string]int{}}

	return interceptor.NewClient(of, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			calls.add("get")

			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			calls.add("list")

			return c.List(ctx, list, options...)
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			calls.add("watch")

			return c.Watch(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			calls.add("create")

			return c.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			calls.add("update")

			return c.Update(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			calls.add("patch")

			return c.Patch(ctx, object, patch, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			calls.add("patch")

			return c.Apply(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			calls.add("delete")

			return c.Delete(ctx, object, options...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, name string, object, sub client.Object,
			options ...client.SubResourceCreateOption,
		) error {
			calls.add("create")

			return c.SubResource(name).Create(ctx, object, sub, options...)
		},
	}), calls
}

func (c *Calls) add(verb string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	c.verbs[verb]++
}

// Counts returns a copy of the number of calls so far, by verb.
func (c *Calls) Counts() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	return maps.Clone(c.verbs)
}
