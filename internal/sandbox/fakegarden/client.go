package fakegarden

import (
	"context"
	"fmt"
	"strings"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/store"
)

const (
	// user is the user of all requests: it is the creator of Shoots and the subject of admin kubeconfigs.
	user = "garden"

	subresourceStatus          = "status"
	subresourceAdminKubeconfig = "adminkubeconfig"
	fieldName                  = "metadata.name"
)

// newClient returns a client of the objects in the store. In addition to a fake client, it supports watches that miss nothing and the
// subresource adminkubeconfig of Shoots. Of the other subresources, it has status only.
func newClient(scheme *runtime.Scheme, objects *store.Store) client.WithWatch {
	fakeClient := fake.NewClientBuilder().
		WithScheme(scheme).
		WithObjectTracker(objects).
		WithStatusSubresource(&gardencorev1beta1.Shoot{}, &gardencorev1beta1.Project{}, &gardencorev1beta1.CloudProfile{}).
		WithIndex(&gardencorev1beta1.Shoot{}, fieldName, func(shoot client.Object) []string { return []string{shoot.GetName()} }).
		Build()
	return interceptor.NewClient(fakeClient, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			// A fake client drops the resource version of a list. The version before the list may be too old, never too new: a
			// watch that starts there may repeat a change, but misses none.
			version := objects.Version()
			if err := c.List(ctx, list, options...); err != nil {
				return err
			}
			list.SetResourceVersion(version)
			return nil
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			return watchObjects(ctx, c, objects, list, options)
		},
		SubResourceCreate: createSubresource,
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, subresource string, object client.Object, options ...client.SubResourceUpdateOption,
		) error {
			if subresource != subresourceStatus {
				return unknownSubresource(subresource)
			}
			return c.SubResource(subresource).Update(ctx, object, options...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption,
		) error {
			if subresource != subresourceStatus {
				return unknownSubresource(subresource)
			}
			return c.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
	})
}

// watchObjects watches the store until the context ends or the watch is stopped. The fake client's own watches know no resource versions.
func watchObjects(
	ctx context.Context, c client.WithWatch, objects *store.Store, list client.ObjectList, options []client.ListOption,
) (watch.Interface, error) {
	kind, err := apiutil.GVKForObject(list, c.Scheme())
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", list, err)
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	wanted := client.ListOptions{}
	wanted.ApplyOptions(options)
	raw := metav1.ListOptions{}
	if converted := wanted.AsListOptions(); converted != nil {
		raw = *converted
	}
	watching, err := objects.Watch(resource, wanted.Namespace, raw)
	if err != nil {
		return nil, err
	}
	return boundWatch{Interface: watching, unbind: context.AfterFunc(ctx, watching.Stop)}, nil
}

// boundWatch is a watch that ends with its context.
type boundWatch struct {
	watch.Interface

	unbind func() bool
}

func (w boundWatch) Stop() {
	w.unbind()
	w.Interface.Stop()
}

// createSubresource issues admin kubeconfigs.
func createSubresource(
	ctx context.Context, c client.Client, subresource string, object, body client.Object, _ ...client.SubResourceCreateOption,
) error {
	if _, isShoot := object.(*gardencorev1beta1.Shoot); !isShoot || subresource != subresourceAdminKubeconfig {
		return unknownSubresource(subresource)
	}
	request, ok := body.(*authenticationv1alpha1.AdminKubeconfigRequest)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("got %T, expected an AdminKubeconfigRequest", body))
	}
	return issueAdminKubeconfig(ctx, c, client.ObjectKeyFromObject(object), user, request)
}

func unknownSubresource(name string) error {
	return apierrors.NewNotFound(gardencorev1beta1.Resource("shoots"), name)
}
