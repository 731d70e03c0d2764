package applier

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestForbiddenWatch verifies that a View is incomplete while objects may be listed but not watched, so that they are polled, and that it
// becomes complete when watches are permitted.
func TestForbiddenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			permitted atomic.Bool
			open      *watch.FakeWatcher
			reported  atomic.Int64
		)

		owner := BundleDeployment("one")
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one", Labels: owner.labels}}
		server := fake.NewClientBuilder().WithObjects(object).WithInterceptorFuncs(interceptor.Funcs{
			Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
				if !permitted.Load() {
					return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
				}

				open = watch.NewFake()

				return open, nil
			},
		}).Build()
		cluster := &Cluster{client: server, watching: server}
		watches := NewWatches(func(string) { reported.Add(1) })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})

		go func() {
			defer close(ended)

			_ = watches.Run(ctx)
		}()
		synctest.Wait()

		complete := func() bool {
			synctest.Wait()

			return watches.Look(cluster, "one").Complete
		}

		watches.Follow(cluster, "one", []Object{{ref: ref{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "one"}}})

		if complete() {
			t.Error("objects that cannot be watched count as watched")
		}

		if reported.Load() == 0 {
			t.Error("the BundleDeployment does not learn that its objects are not watched")
		}

		permitted.Store(true)
		time.Sleep(refusedPause)

		if !complete() {
			t.Fatal("the objects are not watched although they may be")
		}

		permitted.Store(false)
		time.Sleep(2 * settled)
		open.Stop() // the API server ends the watch, and rejects the next one

		before := reported.Load()
		time.Sleep(10 * firstPause)

		if complete() {
			t.Error("objects that can no longer be watched count as watched")
		}

		if reported.Load() == before {
			t.Error("the BundleDeployment does not learn that its objects are no longer watched")
		}

		cancel()
		<-ended
	})
}
