package main_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
)

// second is the name of another project of a garden.
const second = "second"

// TestModes runs a garden with two projects in each mode.
func TestModes(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, garden *garden){
		"own": func(t *testing.T, garden *garden) {
			testConformance(t, garden)
			t.Run("isolation", func(t *testing.T) { testIsolation(t, garden.member(t), true) })
		},
		"shared": func(t *testing.T, garden *garden) {
			testConformance(t, garden)
			t.Run("isolation", func(t *testing.T) { testIsolation(t, garden.member(t), false) })
			t.Run("namespaces", func(t *testing.T) { testNamespacesAreEmptied(t, garden.member(t)) })
		},
		"simulated": func(t *testing.T, garden *garden) { testIsolation(t, garden.member(t), true) },
	}
	for mode, test := range tests {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, t.TempDir(), "--runtimes", mode, "--project", project, "--project", second))
		})
	}
}

// testConformance runs the tests that the local garden and the fake garden must both pass.
func testConformance(t *testing.T, garden *garden) {
	t.Helper()
	tested := garden.underTest(t)
	t.Run("lifecycle", func(t *testing.T) { conformance.Lifecycle(t, tested) })
	t.Run("faults", func(t *testing.T) { conformance.Faults(t, tested) })
	t.Run("rejections", func(t *testing.T) { conformance.Rejections(t, tested) })
}

// testIsolation checks, as a member of two projects, whether runtimes are isolated from each other, and that a deleted runtime rejects
// its administrator.
func testIsolation(t *testing.T, garden client.Client, isolated bool) {
	t.Helper()
	shoot := createShoot(t, garden, project, "one")
	one, two := adminOf(t, garden, shoot), adminOf(t, garden, createShoot(t, garden, project, "two"))

	createNamespace(t, one, "hello")
	namesake := adminOf(t, garden, createShoot(t, garden, second, "one"))
	for other, admin := range map[string]*kubernetes.Clientset{"another runtime": two, "the runtime with the same name in another project": namesake} {
		if seen := hasNamespace(t, admin, "hello"); seen == isolated {
			t.Errorf("%s contains the namespace: got %t, want %t", other, seen, !isolated)
		}
	}

	deleteShoot(t, garden, shoot)
	eventually(t, "the runtime of the deleted shoot rejects its administrator", func(ctx context.Context) error {
		if err := getNamespace(ctx, one, "hello"); err == nil {
			return errors.New("it responds")
		}
		return nil
	})
	createNamespace(t, two, "still-there")
	createNamespace(t, namesake, "there-too")

	again := adminOf(t, garden, createShoot(t, garden, project, "one"))
	if kept := hasNamespace(t, again, "hello"); kept == isolated {
		t.Errorf("a new shoot with the name of a deleted one has the old runtime's namespace: got %t, want %t", kept, !isolated)
	}
}

// testNamespacesAreEmptied deletes a namespace with objects and creates it again. The new namespace must be empty.
func testNamespacesAreEmptied(t *testing.T, garden client.Client) {
	t.Helper()
	const name = "emptied"
	runtime := adminOf(t, garden, createShoot(t, garden, project, name))
	createNamespace(t, runtime, name)
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "content"}}
	if _, err := runtime.CoreV1().ConfigMaps(name).Create(t.Context(), content, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	if err := runtime.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is deleted", func(ctx context.Context) error {
		if err := getNamespace(ctx, runtime, name); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it still exists"), err)
		}
		return nil
	})

	createNamespace(t, runtime, name)
	if _, err := runtime.CoreV1().ConfigMaps(name).Get(t.Context(), "content", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
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
