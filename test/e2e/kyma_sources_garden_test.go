//go:build garden

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/provisioner/installation/bundles"
)

// TestSourcesThroughBundles runs testSources with a bundle provisioner. Each component with a source becomes a BundleDeployment,
// whose Bundle contains the uploaded files of the source.
func TestSourcesThroughBundles(t *testing.T) {
	t.Parallel()

	h := startHub(t)

	testSources(t, sharedGarden(t, "own").project, h.wantSources, h.configure)
}

// wantSources checks that the runtime has one BundleDeployment for each of the given components, and none for other components with
// sources.
func (h *hub) wantSources(runtimeID string, components ...string) {
	h.Helper()

	deployments, found, _ := h.objects(h.Context())

	var got []string

	for _, deployment := range deployments {
		name := deployment.Labels[bundles.LabelComponent]
		if deployment.Labels[bundles.LabelRuntime] != runtimeID || !slices.Contains([]string{"added", "eventing"}, name) {
			continue
		}

		got = append(got, name)

		index := slices.IndexFunc(found, func(bundle v1alpha1.Bundle) bool { return bundle.Name == deployment.Status.ActiveBundle })
		if index < 0 || found[index].Spec.Source.Type != v1alpha1.SourceTypeUpload || found[index].Status.Phase != v1alpha1.PhaseUnpacked {
			h.Errorf("component %s has no unpacked Bundle %q", name, deployment.Status.ActiveBundle)
		}
	}

	if slices.Sort(got); !slices.Equal(got, components) {
		h.Errorf("BundleDeployments of components with a source: %s, want %s", strings.Join(got, ", "), strings.Join(components, ", "))
	}
}
