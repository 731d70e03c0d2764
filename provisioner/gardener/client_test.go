package gardener_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

var shoots = schema.GroupResource{Group: "core.gardener.cloud", Resource: "shoots"}

// through returns a client under test whose calls go through the interceptor.
func (b fixture) through(funcs interceptor.Funcs) *gardener.Client {
	return gardener.New(interceptor.NewClient(b.garden.Client(), funcs), b.garden.Namespace())
}

func TestApplyIsIdempotent(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)
	first := b.get()

	b.apply(runtimeID)

	if again := b.get(); again.UID != first.UID || again.Generation != first.Generation {
		t.Errorf("the second call turned UID %s, generation %d, into UID %s, generation %d", again.UID, again.Generation, first.UID, first.Generation)
	}

	if first.Annotations[shoot.AnnotationRuntimeID] != runtimeID || first.Labels[shoot.LabelAccount] != "acme" {
		t.Errorf("the Shoot lacks the ID of its runtime: labels %v, annotations %v", first.Labels, first.Annotations)
	}

	changed := b.order(runtimeID)
	changed.Shoot.Spec.Provider.Workers[0].Maximum = 9
	delete(changed.Shoot.Annotations, shoot.AnnotationLegacyRuntimeID)

	if err := b.shoots.Apply(t.Context(), changed); err != nil {
		t.Fatal(err)
	}

	after := b.get()
	if after.UID != first.UID || after.Spec.Provider.Workers[0].Maximum != 9 {
		t.Errorf("after the change: UID %s with at most %d machines", after.UID, after.Spec.Provider.Workers[0].Maximum)
	}

	if value, left := after.Annotations[shoot.AnnotationLegacyRuntimeID]; left {
		t.Errorf("a field that the order omits has the value %q", value)
	}
}

func TestApplyOverwritesForeignChanges(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)

	theirs := b.get()
	theirs.Spec.Provider.Workers[0].Maximum = 99

	if err := b.garden.Client().Update(t.Context(), theirs, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}

	b.apply(runtimeID)

	if got, want := b.get().Spec.Provider.Workers[0].Maximum, b.order(runtimeID).Shoot.Spec.Provider.Workers[0].Maximum; got != want {
		t.Errorf("the pool has at most %d machines, want the %d of the order", got, want)
	}
}

func TestApplyRetriesFailedShoot(t *testing.T) {
	cases := map[string]struct {
		reason string
		state  gardencorev1beta1.LastOperationState
		want   int64 // number of retries that two calls request from Gardener
	}{
		"failed":    {"Gardener retries a failed operation only on request; one request is enough", gardencorev1beta1.LastOperationStateFailed, 1},
		"in error":  {"Gardener retries without a request", gardencorev1beta1.LastOperationStateError, 0},
		"succeeded": {"nothing failed", gardencorev1beta1.LastOperationStateSucceeded, 0},
	}

	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			b := newFixture(t)
			b.apply(runtimeID)

			before := b.get()
			before.Status.ObservedGeneration = before.Generation
			before.Status.LastOperation = &gardencorev1beta1.LastOperation{State: c.state}

			if err := b.garden.Client().Status().Update(t.Context(), before); err != nil {
				t.Fatal(err)
			}

			b.apply(runtimeID)
			b.apply(runtimeID)

			if asked := b.get().Generation - before.Generation; asked != c.want {
				t.Errorf("%s: got %d requests, want %d", c.reason, asked, c.want)
			}
		})
	}
}

func TestApplyRejectsForeignShoots(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(b fixture)
		want    string
		because string
	}{
		"of another runtime": {
			"two runtimes in one cluster would remove each other",
			func(b fixture) { b.apply("runtime-2") }, "already exists and has another owner", failure.ReasonAlreadyExists,
		},
		"of nobody": {
			"a Shoot without our labels was created by a person",
			func(b fixture) {
				theirs := b.order("").Shoot
				theirs.Annotations = nil

				if err := b.garden.Client().Create(b.Context(), theirs); err != nil {
					b.Fatal(err)
				}
			}, "already exists and has another owner", failure.ReasonAlreadyExists,
		},
		"being deleted": {
			"a change would not stop the deletion",
			func(b fixture) {
				b.apply(runtimeID)
				b.addFinalizer()

				if err := b.shoots.Delete(b.Context(), name, runtimeID); err != nil {
					b.Fatal(err)
				}
			}, "is being deleted", failure.ReasonConflict,
		},
	}

	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			b := newFixture(t)
			c.prepare(b)
			before := b.get()

			err := b.shoots.Apply(t.Context(), b.order(runtimeID))
			if known := failure.Of(err); !failure.Is(err, failure.Conflict) || !strings.Contains(known.Text, c.want) || known.Reason != c.because {
				t.Errorf("%s: got %v with reason %q", c.reason, err, known.Reason)
			}

			if diff := cmp.Diff(before, b.get()); diff != "" {
				t.Errorf("%s: the Shoot was changed, -before +after:\n%s", c.reason, diff)
			}
		})
	}
}

func TestRejectedShoot(t *testing.T) {
	b := newFixture(t)
	order := b.order(runtimeID)
	order.Shoot.Spec.Provider.Workers[0].Machine.Type = "m1.enormous"

	err := b.shoots.Apply(t.Context(), order)
	if known := failure.Of(err); known.Kind != failure.Invalid && known.Kind != failure.Denied ||
		!strings.Contains(known.Detail, "m1.enormous") || strings.Contains(known.Text, "m1.enormous") {
		t.Errorf("got %s %q with the detail %q, want the reason of Gardener in the detail alone", known.Kind, known.Text, known.Detail)
	}

	if failure.MappingOf(failure.KindOf(err)).Retry {
		t.Error("a rejected Shoot is retried")
	}
}

func TestGet(t *testing.T) {
	b := newFixture(t)

	if _, err := b.shoots.Get(t.Context(), name); !failure.Is(err, failure.NotFound) {
		t.Errorf("a missing Shoot returned %v", err)
	}

	b.apply(runtimeID)

	if got, err := b.shoots.Get(t.Context(), name); err != nil || got.Name != name {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestDelete(t *testing.T) {
	cases := map[string]struct {
		reason   string
		prepare  func(b fixture)
		wantGone bool
		wantLeft bool // unchanged
	}{
		"exists":    {"Gardener rejects a deletion without confirmation", func(b fixture) { b.apply(runtimeID) }, true, false},
		"missing":   {"a missing Shoot needs no deletion", func(fixture) {}, true, false},
		"finalizer": {"a finalizer delays the deletion", func(b fixture) { b.apply(runtimeID); b.addFinalizer() }, false, false},
		"foreign":   {"the Shoot of this name belongs to another runtime", func(b fixture) { b.apply("runtime-2") }, false, true},
		"being deleted by somebody else": {
			"the confirmation is added nevertheless", func(b fixture) {
				b.apply(runtimeID)
				b.addFinalizer()

				if err := b.shoots.Delete(b.Context(), name, runtimeID); err != nil {
					b.Fatal(err)
				}

				existing := b.get()
				delete(existing.Annotations, "confirmation.gardener.cloud/deletion")

				if err := b.garden.Client().Update(b.Context(), existing); err != nil {
					b.Fatal(err)
				}
			}, false, false,
		},
	}

	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			b := newFixture(t)
			c.prepare(b)

			for range 2 {
				if err := b.shoots.Delete(t.Context(), name, runtimeID); err != nil {
					t.Fatalf("%s: %v", c.reason, err)
				}
			}

			if _, err := b.shoots.Get(t.Context(), name); failure.Is(err, failure.NotFound) != c.wantGone {
				t.Fatalf("%s: want gone %t: %v", c.reason, c.wantGone, err)
			}

			if c.wantGone {
				return
			}

			left := b.get()
			confirmed := left.Annotations["confirmation.gardener.cloud/deletion"] == "true"

			if deleted := left.DeletionTimestamp != nil; deleted == c.wantLeft || confirmed == c.wantLeft {
				t.Errorf("%s: deleted %t, confirmed %t", c.reason, deleted, confirmed)
			}
		})
	}
}

func TestShootVanishesDuringDelete(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)

	gone := apierrors.NewNotFound(shoots, name)
	racing := b.through(interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return gone },
	})

	if err := racing.Delete(t.Context(), name, runtimeID); err != nil {
		t.Errorf("a Shoot that vanished between two calls returned %v", err)
	}
}

func TestDeleteHasUIDPrecondition(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)

	swapped := b.through(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			applied := (&client.DeleteOptions{}).ApplyOptions(options)
			if applied.Preconditions == nil || applied.Preconditions.UID == nil || *applied.Preconditions.UID != object.GetUID() {
				t.Error("a new Shoot of the same name would be deleted")
			}

			return c.Delete(ctx, object, options...)
		},
	})

	if err := swapped.Delete(t.Context(), name, runtimeID); err != nil {
		t.Fatal(err)
	}
}

func TestRetry(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)

	patches := 0
	counted := b.through(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			patches++

			return c.Patch(ctx, object, patch, options...)
		},
	})

	existing := b.get()

	for range 2 { // During the second call, the annotation is still present.
		if err := counted.Retry(t.Context(), existing); err != nil {
			t.Fatal(err)
		}
	}

	if patches != 1 || b.get().Annotations["gardener.cloud/operation"] != "retry" && b.get().Generation == existing.Generation {
		t.Errorf("got %d requests, annotations %v", patches, b.get().Annotations)
	}
}

func TestAdminKubeconfig(t *testing.T) {
	b := newFixture(t)

	if _, err := b.shoots.AdminKubeconfig(t.Context(), name, time.Hour); !failure.Is(err, failure.NotFound) {
		t.Errorf("a missing Shoot returned %v", err)
	}

	b.apply(runtimeID)

	if _, err := b.shoots.AdminKubeconfig(t.Context(), name, time.Hour); err == nil {
		t.Error("a Shoot without a cluster has a kubeconfig")
	}

	if _, err := b.shoots.AdminKubeconfig(t.Context(), name, time.Minute); failure.MappingOf(failure.KindOf(err)).Retry {
		t.Errorf("a validity that Gardener rejects is retried: %v", err)
	}
}

func TestConnect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if _, err := gardener.Connect(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a missing kubeconfig returned %v, want an error that names the file", err)
	}

	text := "apiVersion: v1\nkind: Config\nclusters: [{name: g, cluster: {server: 'https://127.0.0.1:1'}}]\n" +
		"contexts: [{name: g, context: {cluster: g}}]\ncurrent-context: g\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	api, err := gardener.Connect(path)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := api.GroupVersionKindFor(&gardencorev1beta1.Shoot{}); err != nil {
		t.Errorf("the client does not know Shoots: %v", err)
	}

	if _, err := gardener.New(api, "garden-local").Get(t.Context(), name); !failure.Is(err, failure.Transient) {
		t.Errorf("an unreachable Gardener returned %v", err)
	}
}
