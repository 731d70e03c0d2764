//go:build garden

package deployments_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// lossy loses a write of the controller, as if the API server restarted: the request, or the response.
type lossy struct {
	client.Client

	deletion, status bool
	// conflicts is the number of further writes of the status that fail because the cache is behind.
	conflicts int
}

var errLost = errors.New("the connection was lost")

// Delete implements client.Writer.
func (l *lossy) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if l.deletion {
		l.deletion = false

		return errLost
	}

	return l.Client.Delete(ctx, object, options...)
}

// Status implements client.StatusClient.
func (l *lossy) Status() client.SubResourceWriter { return lossyStatus{l.Client.Status(), l} }

type lossyStatus struct {
	client.SubResourceWriter

	lossy *lossy
}

// Update implements client.SubResourceWriter.
func (l lossyStatus) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	if l.lossy.conflicts > 0 {
		l.lossy.conflicts--

		return apierrors.NewConflict(schema.GroupResource{Resource: "bundledeployments"}, object.GetName(), errLost)
	}

	err := l.SubResourceWriter.Update(ctx, object, options...)

	deployment, ok := object.(*v1alpha1.BundleDeployment)
	if ok && err == nil && l.lossy.status && len(deployment.Status.History) > 1 {
		l.lossy.status = false

		return errLost
	}

	return err
}

// TestFormerBundleIsDeletedLater loses the deletion of the previous Bundle at the end of a pivot, or the response to the status update
// before it. The next reconciliation must delete the Bundle, although there is nothing to compare.
func TestFormerBundleIsDeletedLater(t *testing.T) {
	for name, loses := range map[string]lossy{"deletion": {deletion: true}, "status": {status: true}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			loses.Client = f.options.Client
			f.options.Client = &loses
			f.restart()

			f.create(f.content("1", f.configMap("one", "1")))
			f.settle()
			f.upgrade(f.content("2", f.configMap("one", "2")))

			_, err := f.pass()
			f.unpack()

			if err == nil {
				_, err = f.pass()
			}

			if !errors.Is(err, errLost) {
				t.Fatalf("the write is not lost: %v", err)
			}

			if _, err := f.pass(); err != nil {
				t.Fatal(err)
			}

			if bundles := f.bundles(); len(bundles) != 1 || bundles[0].Name != f.deployment().Status.ActiveBundle {
				t.Errorf("%d Bundles, and %s is active", len(bundles), f.deployment().Status.ActiveBundle)
			}
		})
	}
}

// TestConflictsDoNotAddUp makes reconciliations fail with conflicts, as happens while the hub's watch resumes. The pause before the next
// reconciliation must not grow.
func TestConflictsDoNotAddUp(t *testing.T) {
	f := newFixture(t)
	behind := &lossy{Client: f.options.Client, conflicts: 1}
	f.options.Client = behind
	f.restart()
	f.create(f.content("1", f.configMap("one", "1")))

	result, err := f.under.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: f.name}})
	if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > time.Second {
		t.Errorf("the next pass is after %s, %v", result.RequeueAfter, err)
	}

	if behind.conflicts != 0 {
		t.Error("there was no conflict")
	}

	f.settle()
	f.wantInstalled()
}
