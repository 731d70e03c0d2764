//go:build garden

package bundles

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

// TestCalls counts the calls of a bundler to its API server from the creation of BundleDeployments until all are installed, except
// for watches and leases. Periodic checks do not count either, because the number of checks before the watches begin depends on
// the machine.
func TestCalls(t *testing.T) {
	t.Parallel()

	f := newFixture(t, 1, true, "APP_DEPLOYMENTS_HEALTH_INTERVAL=1h", "APP_DEPLOYMENTS_DRIFT_INTERVAL=1h")
	calls, sum := f.callsOfDeployments(), 0

	for _, name := range slices.Sorted(maps.Keys(calls)) {
		t.Logf("%.1f %s", float64(calls[name])/deployments, name)
		sum += calls[name]
	}

	if each := float64(sum) / deployments; each > maxCalls {
		t.Errorf("%.1f calls for each BundleDeployment with its Bundle and one object, more than %d", each, maxCalls)
	}
}

// TestCallsAtRest checks that a bundler at rest makes no calls except for watches and leases, for a hundred times the interval of
// its periodic checks.
func TestCallsAtRest(t *testing.T) {
	t.Parallel()

	const interval = restTime / 100

	newFixture(t, 1, true, fmt.Sprintf("APP_DEPLOYMENTS_HEALTH_INTERVAL=%s", interval), fmt.Sprintf("APP_DEPLOYMENTS_DRIFT_INTERVAL=%s", interval)).
		callsOfDeployments()
}

const (
	// deployments is the number of BundleDeployments that the tests in this file create.
	deployments = 6
	// restTime is the time without calls after which a bundler counts as at rest.
	restTime = 2 * time.Second
)

// callsOfDeployments creates BundleDeployments, each with one object, and removes them. Before and after each of these changes, it
// waits until the bundler is at rest. It returns the calls of the installation.
func (f *fixture) callsOfDeployments() map[string]int {
	f.Helper()
	f.gate.record("", nil)
	f.quiet(restTime)
	f.calls()

	for i := range deployments {
		deployment := &v1alpha1.BundleDeployment{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", f.name, i), Labels: map[string]string{"test": f.name}},
			Spec: v1alpha1.BundleDeploymentSpec{
				ProvisionerClassName: f.class(), Template: f.template(f.class(), f.image(strconv.Itoa(i), f.single(i))),
			},
		}

		f.Cleanup(func() { bundletest.Delete(f, f.hub, deployment) })
		f.create(deployment)
	}

	bundletest.Eventually(f, func() string { return f.allHealthy(deployments) })
	f.quiet(restTime)

	calls := f.calls()

	// The bundler removes the objects together with their BundleDeployments.
	if err := f.hub.DeleteAllOf(f.Context(), &v1alpha1.BundleDeployment{}, client.MatchingLabels{"test": f.name}); err != nil {
		f.Fatal(err)
	}

	bundletest.Eventually(f, func() string { return f.allHealthy(0) })
	f.quiet(restTime)

	return calls
}

// maxCalls is the maximum mean number of calls for a BundleDeployment, from its creation until the bundler is at rest.
const maxCalls = 20

// single returns a bundle with one object, whose name contains the given number.
func (f *fixture) single(number int) fstest.MapFS {
	return fstest.MapFS{"manifests/object.yaml": {Data: fmt.Appendf(nil,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d, namespace: default}\n", f.name, number)}}
}

// allHealthy returns "" if the given number of BundleDeployments exist, and all are installed and healthy. Otherwise, it returns the
// problem.
func (f *fixture) allHealthy(number int) string {
	f.Helper()

	list := &v1alpha1.BundleDeploymentList{}
	if err := f.hub.List(f.Context(), list, client.MatchingLabels{"test": f.name}); err != nil {
		return err.Error()
	}

	for _, each := range list.Items {
		for _, condition := range []string{v1alpha1.TypeInstalled, v1alpha1.TypeHealthy} {
			if !meta.IsStatusConditionTrue(each.Status.Conditions, condition) {
				return fmt.Sprintf("%s is not %s: %+v", each.Name, condition, each.Status)
			}
		}
	}

	if len(list.Items) != number {
		return fmt.Sprintf("there are %d BundleDeployments", len(list.Items))
	}

	return ""
}

// quiet waits until the bundler has made no call for the duration of pause.
func (f *fixture) quiet(pause time.Duration) {
	f.Helper()

	since, before := time.Now(), len(f.gate.sofar())

	bundletest.Eventually(f, func() string {
		points := f.gate.sofar()
		if len(points) == before && time.Since(since) > pause {
			return ""
		}

		if len(points) > before {
			since = time.Now()
		}

		recent := points[before:]
		before = len(points)

		return fmt.Sprintf("the bundler still makes calls: %v", recent)
	})
}

// calls returns the numbers of API calls to the hub since the previous use of this function, by name.
func (f *fixture) calls() map[string]int {
	f.Helper()

	found := map[string]int{}

	for _, point := range f.gate.forget() {
		name, _, _ := strings.Cut(point, " #")
		if call, received := strings.CutSuffix(name, " received"); received && strings.HasPrefix(call, "hub ") {
			found[call]++
		}
	}

	return found
}
