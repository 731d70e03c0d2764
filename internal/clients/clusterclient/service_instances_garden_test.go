//go:build garden

package clusterclient_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	kindInstance = "ServiceInstance"
	kindBinding  = "ServiceBinding"

	operatorFinalizer = "services.cloud.sap.com/sap-btp-finalizer"
)

func servicesVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "services.cloud.sap.com", Version: "v1"}
}

// create creates an object of the service operator.
func (s *apiServer) create(kind, namespace, name string, finalizers ...string) {
	s.Helper()

	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(servicesVersion().WithKind(kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetFinalizers(finalizers)
	s.must(s.Create(s.Context(), object))
}

// objects returns the objects of a kind in all namespaces.
func (s *apiServer) objects(kind string) []unstructured.Unstructured {
	s.Helper()

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(servicesVersion().WithKind(kind + "List"))
	s.must(s.List(s.Context(), list))

	return list.Items
}

// operate does the work of the operator: it removes its finalizer from objects that are being deleted. It fails the test if an instance
// is deleted while bindings exist, because Service Manager would refuse that.
func (s *apiServer) operate() {
	s.Helper()

	bindings := s.objects(kindBinding)

	for _, object := range append(bindings, s.objects(kindInstance)...) {
		if object.GetDeletionTimestamp() == nil {
			continue
		}

		if object.GetKind() == kindInstance && len(bindings) > 0 {
			s.Errorf("the instance %s is deleted before the bindings", object.GetName())
		}

		object.SetFinalizers(nil)
		s.must(s.Update(s.Context(), &object))
	}
}

// wantLeft calls RemoveServiceInstances once and compares the number of remaining objects.
func (s *apiServer) wantLeft(reason string, abandon bool, want int) {
	s.Helper()

	left, err := s.access.RemoveServiceInstances(s.Context(), instance(), abandon)
	if err != nil || left != want {
		s.Fatalf("%s: %d objects are left, want %d: %v", reason, left, want, err)
	}
}

func (s *apiServer) wantNone() {
	s.Helper()

	if left := append(s.objects(kindBinding), s.objects(kindInstance)...); len(left) > 0 {
		s.Errorf("%d objects are left, such as the %s %s", len(left), left[0].GetKind(), left[0].GetName())
	}
}

// testServiceInstances checks the removal of service instances and bindings, with and without the operator.
func testServiceInstances(s *apiServer) {
	s.wantLeft("without the custom resources there is nothing to remove", false, 0)

	_, err := envtest.InstallCRDs(s.environment.Config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join("testdata", "crds")}, ErrorIfPathMissing: true,
	})
	s.must(err)
	s.must(s.Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))

	s.wantLeft("without objects there is nothing to remove", false, 0)
	s.Run("operator", func(t *testing.T) { testRemovalByOperator(s.in(t)) })
	s.Run("abandoned", func(t *testing.T) { testAbandonment(s.in(t)) })
	s.Run("many", func(t *testing.T) { testManyInstances(s.in(t)) })

	s.create(kindInstance, "default", "kept")

	_, err = s.withoutRights().RemoveServiceInstances(s.Context(), instance(), true)
	if !failure.Is(err, failure.Permanent) || !strings.Contains(failure.Of(err).Detail, `User "nobody" cannot list resource "servicebindings"`) {
		s.Errorf("operators have to know which right is missing: %v", err)
	}

	if len(s.objects(kindInstance)) != 1 {
		s.Error("a user without rights has removed the instance")
	}

	s.wantLeft("the only kind of object are instances", false, 0)

	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("servicebindings.services.cloud.sap.com")
	s.must(s.Delete(s.Context(), definition))

	s.create(kindInstance, "default", "alone")
	s.wantLeft("instances without the custom resource of bindings are removed", true, 0)
}

// testRemovalByOperator checks that the bindings are deleted before the instances, and that each call reports what still exists.
func testRemovalByOperator(s *apiServer) {
	s.create(kindBinding, "default", "first", operatorFinalizer)
	s.create(kindBinding, "other", "second", operatorFinalizer)
	s.create(kindInstance, "default", "first", operatorFinalizer)
	s.create(kindInstance, "other", "second", operatorFinalizer)
	s.create(kindInstance, "other", "third")

	for _, abandoned := range []int{2, 2} {
		s.wantLeft("the operator has not removed the bindings", false, abandoned)
	}

	if got := s.objects(kindInstance); len(got) != 3 || got[0].GetDeletionTimestamp() != nil {
		s.Errorf("an instance is deleted before the bindings: %v", got)
	}

	s.operate()
	s.wantLeft("the operator has not removed the instances", false, 2)
	s.operate()
	s.wantLeft("the operator has removed everything", false, 0)
	s.wantNone()
}

// testAbandonment checks that one call removes everything if the operator does not respond, with finalizers of any client.
func testAbandonment(s *apiServer) {
	s.create(kindBinding, "default", "new", operatorFinalizer, "example.com/other")
	s.create(kindBinding, "other", "deleted", operatorFinalizer)
	s.create(kindInstance, "default", "new", operatorFinalizer, "example.com/other")
	s.create(kindInstance, "other", "free")

	deleted := s.objects(kindBinding)[1]
	s.must(s.Delete(s.Context(), &deleted, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	s.wantLeft("bindings and instances are abandoned", true, 0)
	s.wantNone()
}

// testManyInstances checks that repeated calls remove more objects than one call handles.
func testManyInstances(s *apiServer) {
	const many = 205

	for i := range many {
		s.create(kindInstance, "default", fmt.Sprintf("instance-%d", i), operatorFinalizer)
	}

	s.wantLeft("one call handles 200 objects", true, many-200)
	s.wantLeft("the next call handles the rest", true, 0)
	s.wantNone()
}
