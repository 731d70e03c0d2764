package clusterclient

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// The custom resources of the SAP BTP service operator. Bindings come first, because an instance with bindings cannot be removed.
const (
	serviceBindings  = "servicebindings"
	serviceInstances = "serviceinstances"

	serviceOperatorAPI = "/apis/services.cloud.sap.com/v1"
	// maxServiceObjects limits how many objects a call removes, so that the call ends within its time limit.
	maxServiceObjects = 200
)

// RemoveServiceInstances deletes the service bindings of the SAP BTP service operator in the instance's runtime and, once they
// are gone, the service instances. The operator then deletes both in Service Manager. left is the number of remaining bindings
// or, if there are none, of remaining instances, and at most maxServiceObjects. The caller repeats the call until left is 0. It
// is also 0 if the runtime does not have these custom resources.
//
// If abandon is set, the call also removes the finalizers, so that the objects disappear even if the operator does not respond.
// In that case, the service instances may remain in Service Manager.
func (a Access) RemoveServiceInstances(ctx context.Context, instance environment.Instance, abandon bool) (left int, err error) {
	err = a.inRuntime(ctx, instance, func(ctx context.Context, client *rest.RESTClient) error {
		for _, resource := range []string{serviceBindings, serviceInstances} {
			var err error

			left, err = removeObjects(ctx, client, resource, abandon)
			if err != nil || left > 0 {
				return actionError(err, "remove the service instances")
			}
		}

		return nil
	})

	return left, err
}

// removeObjects deletes the objects of a resource in all namespaces, and returns how many still exist.
func removeObjects(ctx context.Context, client *rest.RESTClient, resource string, abandon bool) (left int, err error) {
	found, err := listObjects(ctx, client, resource)
	if err != nil || len(found) == 0 {
		return 0, err
	}

	for _, object := range found {
		if err := removeObject(ctx, client, resource, object, abandon); err != nil && !apierrors.IsNotFound(err) {
			return 0, err
		}
	}

	found, err = listObjects(ctx, client, resource)

	return len(found), err
}

// removeObject deletes an object unless it is already being deleted. If abandon is set, it also removes the object's finalizers.
func removeObject(ctx context.Context, client *rest.RESTClient, resource string, object metav1.PartialObjectMetadata, abandon bool) error {
	path := []string{serviceOperatorAPI, "namespaces", object.Namespace, resource, object.Name}

	if object.DeletionTimestamp == nil {
		if err := client.Delete().AbsPath(path...).Do(ctx).Error(); err != nil {
			return err
		}
	}

	if !abandon || len(object.Finalizers) == 0 {
		return nil
	}

	return client.Patch(types.MergePatchType).AbsPath(path...).Body([]byte(`{"metadata":{"finalizers":null}}`)).Do(ctx).Error()
}

// listObjects returns the metadata of at most maxServiceObjects objects of a resource. If the resource is not installed, the
// result is empty.
func listObjects(ctx context.Context, client *rest.RESTClient, resource string) ([]metav1.PartialObjectMetadata, error) {
	result := client.Get().AbsPath(serviceOperatorAPI, resource).Param("limit", strconv.Itoa(maxServiceObjects)).Do(ctx)
	if err := result.Error(); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err // unlike the error of Raw, it contains the message of the API server
	}

	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}

	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("decoding the list of %s: %w", resource, err)
	}

	return list.Items, nil
}
