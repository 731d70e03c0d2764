package applier

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// leaveReplicas removes spec.replicas from an object that a HorizontalPodAutoscaler scales. Otherwise, each apply would undo the
// scaling.
func leaveReplicas(object, present *unstructured.Unstructured) {
	scaled := slices.ContainsFunc(present.GetManagedFields(), func(fields metav1.ManagedFieldsEntry) bool {
		return fields.Subresource == "scale" && fields.Manager == "kube-controller-manager"
	})
	if scaled {
		unstructured.RemoveNestedField(object.Object, "spec", "replicas")
	}
}
