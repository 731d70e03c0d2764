package shoot

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Manifest returns the object as server-side apply wants it: only fields that are set, since whoever applies a field owns it.
// A typed Shoot would bring a whole status with it.
func Manifest(object client.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %T %s: %w", object, object.GetName(), err)
	}

	unstructured.RemoveNestedField(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")

	return &unstructured.Unstructured{Object: fields}, nil
}
