package shoot

import (
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Manifest returns the Shoot as server-side apply wants it: only fields that are set, since whoever applies a field owns it.
// The typed Shoot would bring a whole status with it.
func Manifest(shoot *gardencorev1beta1.Shoot) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shoot)
	if err != nil {
		return nil, fmt.Errorf("convert Shoot %s: %w", shoot.Name, err)
	}

	unstructured.RemoveNestedField(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")

	return &unstructured.Unstructured{Object: fields}, nil
}
