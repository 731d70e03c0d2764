//go:build garden

package requirements_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// TestRequirement06ObservedGeneration checks the observed generation after success and failure. A change of metadata must change
// neither the generation nor the observed generation.
func TestRequirement06ObservedGeneration(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		good, bad := "r6-good-"+f.class, "r6-bad-"+f.class
		f.sources.set(good, has(manifest()))
		f.sources.set(bad, func(s *supply) { s.err = errTerminal })
		f.image(good)
		f.image(bad)
		unpacked := f.reaches(good, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
		failed := f.reaches(bad, v1alpha1.PhaseFailing, v1alpha1.ReasonUnpackFailed)
		for _, bundle := range []*v1alpha1.Bundle{unpacked, failed} {
			if bundle.Status.ObservedGeneration != 1 {
				t.Errorf("the observed generation is %d", bundle.Status.ObservedGeneration)
			}
		}
		if err := f.Patch(t.Context(), unpacked, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))); err != nil {
			t.Fatal(err)
		}
		labeled := f.reaches(good, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
		if labeled.Generation != 1 || labeled.Status.ObservedGeneration != 1 || f.sources.fetches(good) != 1 {
			t.Errorf("a label has changed more than the label: %+v after %d fetches", labeled, f.sources.fetches(good))
		}
	})
}
