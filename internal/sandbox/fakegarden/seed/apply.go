package seed

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// FieldManager owns what Apply writes.
const FieldManager = "garden"

// Apply creates the objects with which a garden begins, or brings them up to date. The API server has to know all their kinds.
func Apply(ctx context.Context, c client.Client, project string) error {
	for _, object := range Objects(project) {
		if err := apply(ctx, c, object); err != nil {
			return fmt.Errorf("apply %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

func apply(ctx context.Context, c client.Client, object client.Object) error {
	kind, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	configuration := &unstructured.Unstructured{Object: content}
	configuration.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(configuration.Object, "status")
	unstructured.RemoveNestedField(configuration.Object, "metadata", "creationTimestamp")
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), client.FieldOwner(FieldManager), client.ForceOwnership)
}
