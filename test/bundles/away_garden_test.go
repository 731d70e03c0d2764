//go:build garden

package bundles

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// The bundler is a separate process, so the tests cannot use fake time. Instead, they divide all intervals of the bundler, and an
// hour, by scale.
const (
	scale = 300
	hour  = time.Hour / scale
	// unreachable is the interval between the bundler's attempts to reach the target.
	unreachable = 30 * time.Second / scale
)

// TestTargetAway makes the target unreachable for an hour: at rest, before a pivot or an uninstallation begins, and at a write of
// a pivot. The active Bundle must stay the same and must always be served, the number of calls must be bounded, and the bundler
// must continue afterwards.
func TestTargetAway(t *testing.T) {
	t.Parallel()

	all := map[string]scenario{}
	for _, each := range scenarios() {
		all[each.name] = each
	}

	pivot := all["pivot"]
	points, random := writes(pivot.run(t, "", nil)), rand.New(rand.NewPCG(harness.Seed(t), 0))
	rest := scenario{prepare: pivot.prepare, act: func(*fixture) {}, end: func(f *fixture) string { return f.installed("1", v1alpha1.ReasonInstallationSucceeded) }}

	t.Run("at rest", func(t *testing.T) { t.Parallel(); awayBefore(t, rest) })
	t.Run("before a pivot", func(t *testing.T) { t.Parallel(); awayBefore(t, pivot) })
	t.Run("before an uninstallation", func(t *testing.T) { t.Parallel(); awayBefore(t, all["uninstall"]) })

	t.Run("during a pivot", func(t *testing.T) {
		t.Parallel()

		atPoints(t, points, 1, random, true, func(t *testing.T, point string) bool {
			f := newAway(t, pivot)
			f.gate.record(point, func() bool { f.leave(); return false })
			pivot.act(f)

			if !f.reaches(pivot) {
				return false
			}

			f.anHour()
			bundletest.Eventually(f, func() string { return pivot.end(f) })

			return true
		})
	})
}

// awayBefore makes the target unreachable before the scenario's act.
func awayBefore(t *testing.T, scenario scenario) {
	t.Helper()

	f := newAway(t, scenario)
	f.gate.record("", nil)
	f.leave()
	scenario.act(f)
	f.anHour()
	bundletest.Eventually(f, func() string { return scenario.end(f) })
}

// newAway returns a fixture with short intervals, on which it has prepared the scenario. The fixture's content is read all the time.
func newAway(t *testing.T, scenario scenario) *fixture {
	t.Helper()

	f := newFixture(t, 1, false,
		fmt.Sprintf("APP_DEPLOYMENTS_HEALTH_INTERVAL=%s", time.Minute/scale), fmt.Sprintf("APP_DEPLOYMENTS_DRIFT_INTERVAL=%s", 10*time.Minute/scale),
		fmt.Sprintf("APP_DEPLOYMENTS_RESYNC_INTERVAL=%s", hour), fmt.Sprintf("APP_DEPLOYMENTS_UNREACHABLE_INTERVAL=%s", unreachable))
	scenario.prepare(f)
	f.observe(true)

	return f
}

// leave makes the target unreachable, and closes the connections to it.
func (f *fixture) leave() {
	f.gate.away.Store(true)
	f.targetProxy.CloseClientConnections()
}

// anHour waits for an hour, checks the bundler's calls during this time, and makes the target reachable again.
func (f *fixture) anHour() {
	f.Helper()

	active := f.active()
	unknown := func() string {
		deployment := &v1alpha1.BundleDeployment{}
		if err := f.hub.Get(f.Context(), client.ObjectKey{Name: f.name}, deployment); err != nil {
			return fmt.Sprintf("the BundleDeployment is lost: %v", err)
		}

		condition := meta.FindStatusCondition(deployment.Status.Conditions, v1alpha1.TypeInstalled)
		if condition == nil || condition.Status != metav1.ConditionUnknown || f.active() != active {
			return fmt.Sprintf("the status of the installation is %+v, and the active Bundle %s instead of %s", condition, f.active(), active)
		}

		return ""
	}

	// The hour begins when the bundler has noticed that the target is unreachable.
	bundletest.Eventually(f, unknown)
	f.gate.refused.Store(0)
	before := len(f.gate.sofar())

	<-time.After(hour)

	if problem := unknown(); problem != "" {
		f.Error(problem)
	}

	var written, read int

	for _, point := range f.gate.sofar()[before:] {
		switch {
		case !strings.Contains(point, " received "):
		case strings.HasPrefix(point, "hub PUT bundledeployments status"):
			written++
		case strings.HasPrefix(point, "content GET"):
			read++
		}
	}

	// Each attempt is one call. The watches of the two kinds also make some calls.
	if refused, most := f.gate.refused.Load(), int64(2*hour/unreachable); refused == 0 || refused > most {
		f.Errorf("%d attempts to reach the target, more than %d or none", refused, most)
	}

	// The status changes once, when the target becomes unreachable, and not at each attempt.
	if written > maxWritten {
		f.Errorf("%d writes of the status, more than %d: %v", written, maxWritten, f.gate.sofar()[before:])
	}

	if read > maxRead {
		f.Errorf("the content was read %d times, more than %d times", read, maxRead)
	}

	f.Logf("%d attempts, %d writes of the status, the content was read %d times", f.gate.refused.Load(), written, read)
	f.gate.away.Store(false)
}

// Maximum numbers of status writes and of content reads while the target is unreachable.
const (
	maxWritten = 6
	maxRead    = 3
)
