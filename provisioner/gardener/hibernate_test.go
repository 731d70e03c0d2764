package gardener_test

import (
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// TestSetHibernation checks that a hibernation changes nothing else in the spec, and that later changes keep it.
func TestSetHibernation(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)

	edited := b.get()
	edited.Spec.Hibernation = &gardencorev1beta1.Hibernation{Schedules: []gardencorev1beta1.HibernationSchedule{{Start: new("0 20 * * *")}}}
	edited.Spec.Provider.Workers[0].Maximum = 9

	if err := b.garden.Client().Update(t.Context(), edited, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}

	before := b.get()
	traced := map[string]string{shoot.AnnotationOperationID: "op-2", shoot.AnnotationTraceparent: "00-trace"}

	if err := b.shoots.SetHibernation(t.Context(), before, true, traced); err != nil {
		t.Fatal(err)
	}

	want := before.Spec.DeepCopy()
	want.Hibernation.Enabled = new(true)

	after := b.get()
	if diff := cmp.Diff(*want, after.Spec); diff != "" || after.Generation != before.Generation+1 {
		t.Errorf("generation %d became %d, -want +got:\n%s", before.Generation, after.Generation, diff)
	}

	if after.Annotations[shoot.AnnotationOperationID] != "op-2" || after.Annotations[shoot.AnnotationTraceparent] != "00-trace" {
		t.Errorf("the annotations are %v", after.Annotations)
	}

	if err := b.shoots.SetHibernation(t.Context(), before, false, nil); !failure.Is(err, failure.Transient) {
		t.Errorf("with a Shoot that has changed since it was read: got %v", err)
	}

	objects := b.order(runtimeID)
	objects.Keep(after)
	b.change(after, objects)

	changed := b.get()
	if trace, found := changed.Annotations[shoot.AnnotationTraceparent]; found || changed.Annotations[shoot.AnnotationOperationID] != "op-1" {
		t.Errorf("a later change without a trace keeps the trace %q of the hibernation: %v", trace, changed.Annotations)
	}

	if diff := cmp.Diff(want.Hibernation, changed.Spec.Hibernation); diff != "" {
		t.Errorf("hibernation after a later change, -want +got:\n%s", diff)
	}

	if err := b.shoots.SetHibernation(t.Context(), changed, false, map[string]string{shoot.AnnotationOperationID: ""}); err != nil {
		t.Fatal(err)
	}

	woken := b.get()
	if _, found := woken.Annotations[shoot.AnnotationOperationID]; found || *woken.Spec.Hibernation.Enabled {
		t.Errorf("after the wake-up the hibernation is %v, and the annotations are %v", woken.Spec.Hibernation, woken.Annotations)
	}
}

func TestSetHibernationOfDeletedShoot(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)
	b.addFinalizer()

	if err := b.shoots.Delete(t.Context(), name, runtimeID); err != nil {
		t.Fatal(err)
	}

	if err := b.shoots.SetHibernation(t.Context(), b.get(), true, nil); !failure.Is(err, failure.Conflict) {
		t.Errorf("got %v", err)
	}
}
