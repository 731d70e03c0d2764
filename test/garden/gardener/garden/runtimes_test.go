package main_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestRuntimes checks, as a project member, which modes isolate runtimes from each other, and that a deleted runtime rejects its
// administrator.
func TestRuntimes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		// isolated is true if runtimes cannot see each other's objects.
		isolated bool
	}{
		"own":       {isolated: true},
		"shared":    {isolated: false},
		"simulated": {isolated: true},
	}
	for mode, test := range tests {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			garden := start(t, t.TempDir(), "--runtimes", mode).member(t)
			shoot := createShoot(t, garden, "one")
			one, two := adminOf(t, garden, shoot), adminOf(t, garden, createShoot(t, garden, "two"))

			createNamespace(t, one, "hello")
			if seen := hasNamespace(t, two, "hello"); seen == test.isolated {
				t.Errorf("the other runtime contains the namespace: got %t, want %t", seen, !test.isolated)
			}

			deleteShoot(t, garden, shoot)
			eventually(t, "the runtime of the deleted shoot rejects its administrator", func(ctx context.Context) error {
				if err := getNamespace(ctx, one, "hello"); err == nil {
					return errors.New("it responds")
				}
				return nil
			})
			createNamespace(t, two, "still-there")

			again := adminOf(t, garden, createShoot(t, garden, "one"))
			if kept := hasNamespace(t, again, "hello"); kept == test.isolated {
				t.Errorf("a new shoot with the name of a deleted one has the old runtime's namespace: got %t, want %t", kept, !test.isolated)
			}
		})
	}
}

// TestNamespacesAreEmptied deletes a namespace with objects and creates it again. The new namespace must be empty.
func TestNamespacesAreEmptied(t *testing.T) {
	t.Parallel()
	garden := start(t, t.TempDir(), "--runtimes", "shared").member(t)
	runtime := adminOf(t, garden, createShoot(t, garden, "one"))
	createNamespace(t, runtime, "hello")
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "content"}}
	if _, err := runtime.CoreV1().ConfigMaps("hello").Create(t.Context(), content, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	if err := runtime.CoreV1().Namespaces().Delete(t.Context(), "hello", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is deleted", func(ctx context.Context) error {
		if err := getNamespace(ctx, runtime, "hello"); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it still exists"), err)
		}
		return nil
	})

	createNamespace(t, runtime, "hello")
	if _, err := runtime.CoreV1().ConfigMaps("hello").Get(t.Context(), "content", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("objects in the deleted namespace still exist: %v", err)
	}
}

func createNamespace(t *testing.T, runtime *kubernetes.Clientset, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := runtime.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating a namespace in the runtime: %v", err)
	}
}

func hasNamespace(t *testing.T, runtime *kubernetes.Clientset, name string) bool {
	t.Helper()
	err := getNamespace(t.Context(), runtime, name)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("reading a namespace of the runtime: %v", err)
	}
	return err == nil
}

func getNamespace(ctx context.Context, runtime *kubernetes.Clientset, name string) error {
	_, err := runtime.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	return err
}
