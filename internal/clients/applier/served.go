package applier

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// find returns the metadata of an object, or nil if the object does not exist. If the cluster no longer serves the version of the
// kind, for example after an upgrade of Kubernetes or of the kind's definition, find reads the object in another version.
func (w *work) find(ctx context.Context, one ref) (*metav1.PartialObjectMetadata, error) {
	object := one.bare()

	err := w.client.Get(ctx, one.key(), object)
	if err == nil {
		return object, nil
	}

	// If the cluster stops to serve a version that is in the cache of kinds, it responds as for any other unknown path.
	unserved := meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	if !unserved {
		return nil, ignoreGone(err)
	}

	if one.Version, err = w.otherVersion(one.kind()); err != nil || one.Version == "" {
		return nil, err
	}

	object = one.bare()
	if err := w.client.Get(ctx, one.key(), object); err != nil {
		return nil, ignoreGone(err)
	}

	return object, nil
}

// otherVersion returns another version of a kind, which the cluster serves, or "" if there is none. It asks the cluster once for
// each kind.
func (w *work) otherVersion(kind schema.GroupVersionKind) (string, error) {
	if version, known := w.others[kind]; known {
		return version, nil
	}

	version, err := w.discoverOther(kind)
	if err == nil {
		w.others[kind] = version
	}

	return version, err
}

func (w *work) discoverOther(kind schema.GroupVersionKind) (string, error) {
	asked, err := discovery.NewDiscoveryClientForConfigAndClient(w.cluster.config, w.cluster.http)
	if err != nil {
		return "", err
	}

	groups, err := asked.ServerGroups()
	if err != nil {
		return "", err
	}

	for _, group := range groups.Groups {
		if group.Name != kind.Group {
			continue
		}

		for _, version := range group.Versions {
			// An error could mean that the server of the group does not respond. Its objects may still exist.
			found, err := asked.ServerResourcesForGroupVersion(version.GroupVersion)
			if ignoreGone(err) != nil {
				return "", err
			}

			if err == nil && version.Version != kind.Version &&
				slices.ContainsFunc(found.APIResources, func(resource metav1.APIResource) bool { return resource.Kind == kind.Kind }) {
				return version.Version, nil
			}
		}
	}

	return "", nil
}
