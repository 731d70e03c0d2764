//go:build garden

package requirements_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// TestRegression07FullStore fills the volume of the store. The condition says so, and the Bundle is unpacked when there is space again. An unpacked
// Bundle stays unpacked meanwhile.
func TestRegression07FullStore(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		former, name := "g7-former-"+f.class, "g7-"+f.class
		f.sources.set(former, has(other()))
		f.sources.set(name, has(manifest()))
		f.image(former)
		f.reaches(former, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)

		f.disk.fill(fmt.Errorf("the bundle store has no space left: %w", syscall.ENOSPC))
		f.image(name)
		failed := f.reaches(name, v1alpha1.PhaseFailing, v1alpha1.ReasonUnpackFailed)
		if message := failed.Status.Conditions[0].Message; !strings.Contains(message, "no space left") {
			t.Errorf("the message is %q", message)
		}
		f.reaches(former, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)

		f.disk.fill(nil)
		f.reaches(name, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
	})
}
