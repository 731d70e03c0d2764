//go:build garden

package requirements_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// TestRequirement05AllConditions watches a Bundle from its creation. The first status, and each later one, must be complete.
func TestRequirement05AllConditions(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		name := "r5-" + f.class
		f.sources.set(name, func(s *supply) { s.blocked = make(chan struct{}); s.files = manifest() })
		changes, err := f.Watch(t.Context(), &v1alpha1.BundleList{}, client.MatchingFields{"metadata.name": name})
		if err != nil {
			t.Fatal(err)
		}
		defer changes.Stop()
		f.image(name)
		phases := []v1alpha1.Phase{}
		for change := range changes.ResultChan() {
			bundle, isBundle := change.Object.(*v1alpha1.Bundle)
			if !isBundle || bundle.Status.Phase == "" {
				continue
			}
			f.complete(bundle)
			phases = append(phases, bundle.Status.Phase)
			if bundle.Status.Phase == v1alpha1.PhaseUnpacking {
				f.sources.set(name, func(s *supply) {
					if s.fetches == 1 && s.blocked != nil {
						close(s.blocked)
						s.blocked = nil
					}
				})
			}
			if bundle.Status.Phase == v1alpha1.PhaseUnpacked {
				break
			}
		}
		if phases[len(phases)-1] != v1alpha1.PhaseUnpacked || len(phases) < 2 {
			t.Errorf("the phases are %v", phases)
		}
	})
}
