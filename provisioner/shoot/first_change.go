package shoot

import (
	"fmt"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/objectdiff"
)

// FirstChange returns the fields of the present Shoot that applying the objects would change. It omits the annotations with the
// operation's ID and trace, which every change sets. It calls Keep on a copy, so it does not modify the receiver.
func (o *Objects) FirstChange(present *gardencorev1beta1.Shoot) ([]objectdiff.Change, error) {
	wanted := *o
	wanted.Shoot = o.Shoot.DeepCopy()
	wanted.Keep(present)

	for _, name := range []string{AnnotationOperationID, AnnotationLegacyOperationID, AnnotationTraceparent} {
		delete(wanted.Shoot.Annotations, name)
	}

	after, err := Manifest(wanted.Shoot)
	if err != nil {
		return nil, err
	}

	before, err := Manifest(present)
	if err != nil {
		return nil, err
	}

	// These fields are empty in a Shoot that was read as a typed object.
	before.SetAPIVersion(after.GetAPIVersion())
	before.SetKind(after.GetKind())

	changes, err := objectdiff.Changes(before.Object, after.Object, isProviderConfig)
	if err != nil {
		return nil, fmt.Errorf("comparing Shoots: %w", err)
	}

	if o.Authentication != nil && o.Authentication.Name != ReferredAuthentication(present) {
		changes = append(changes, objectdiff.Change{
			Path: "ConfigMap " + o.Authentication.Name, Wanted: "the identity provider of the order",
		})
	}

	return changes, nil
}

// isProviderConfig reports whether the path leads to an extension's configuration, which server-side apply replaces as a whole.
func isProviderConfig(path string) bool {
	return slices.ContainsFunc([]string{".infrastructureConfig", ".controlPlaneConfig", ".providerConfig"}, func(suffix string) bool {
		return strings.HasSuffix(path, suffix)
	})
}

// ReferredAuthentication returns the name of the ConfigMap with the Shoot's authentication configuration, or an empty string.
func ReferredAuthentication(present *gardencorev1beta1.Shoot) string {
	server := present.Spec.Kubernetes.KubeAPIServer
	if server == nil || server.StructuredAuthentication == nil {
		return ""
	}

	return server.StructuredAuthentication.ConfigMapName
}
