//go:build garden

package requirements_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

// TestRequirement04ConditionTypes brings Bundles into each phase. The fixture checks in each that types, phases and reasons are the documented ones.
func TestRequirement04ConditionTypes(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		for name, c := range map[string]struct {
			supply func(*supply)
			phase  v1alpha1.Phase
			reason string
		}{
			"pending":   {func(s *supply) { s.pending = "waiting for an upload" }, v1alpha1.PhasePending, v1alpha1.ReasonUnpackPending},
			"unpacking": {func(s *supply) { s.blocked = make(chan struct{}) }, v1alpha1.PhaseUnpacking, v1alpha1.ReasonUnpacking},
			"unpacked":  {has(manifest()), v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful},
			"transient": {func(s *supply) { s.err = errors.New("connection refused") }, v1alpha1.PhaseFailing, v1alpha1.ReasonUnpackFailed},
			"terminal":  {func(s *supply) { s.err = errTerminal }, v1alpha1.PhaseFailing, v1alpha1.ReasonUnpackFailed},
			"signature": {func(s *supply) { s.err = errUnsigned }, v1alpha1.PhaseFailing, v1alpha1.ReasonSignatureInvalid},
			"format":    {has(fstest.MapFS{}), v1alpha1.PhaseFailing, v1alpha1.ReasonUnpackFailed},
			"panic":     {func(s *supply) { s.panics = true }, v1alpha1.PhaseFailing, v1alpha1.ReasonUnpackFailed},
		} {
			t.Run(name, func(t *testing.T) {
				own := *f
				own.T = t
				bundle := "r4-" + f.class + "-" + name
				f.sources.set(bundle, c.supply)
				own.image(bundle)
				got := own.reaches(bundle, c.phase, c.reason)
				if c.phase != v1alpha1.PhaseUnpacked && (got.Status.ResolvedSource != nil || got.Status.Digest != "") {
					t.Errorf("nothing is unpacked, and the status is %+v", got.Status)
				}
			})
		}
	})
}

// TestRequirement04Finalizer checks the reason of a failed cleanup, and that a Bundle is removed when the cleanup succeeds.
func TestRequirement04Finalizer(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		name := "r4-finalizer-" + f.class
		f.sources.set(name, has(manifest()))
		bundle := f.image(name)
		f.reaches(name, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
		f.disk.fail(errors.New("the disk is read-only"))
		if err := f.Delete(t.Context(), bundle); err != nil {
			t.Fatal(err)
		}
		f.reaches(name, v1alpha1.PhaseFailing, v1alpha1.ReasonProcessingFinalizerFailed)
		f.disk.fail(nil)
		bundletest.Eventually(t, func() string { return f.exists(name) })
	})
}
