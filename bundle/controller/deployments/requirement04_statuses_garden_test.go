//go:build garden

package deployments_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// reasons are the documented reasons of the conditions of a BundleDeployment.
func reasons() []string {
	return []string{
		v1alpha1.ReasonReconcileFailed, v1alpha1.ReasonBundleLoadFailed, v1alpha1.ReasonReadingContentFailed, v1alpha1.ReasonErrorGettingClient,
		v1alpha1.ReasonErrorGettingReleaseState, v1alpha1.ReasonInstallFailed, v1alpha1.ReasonUpgradeFailed, v1alpha1.ReasonInstallationSucceeded,
		v1alpha1.ReasonInstallationStatusFalse, v1alpha1.ReasonHealthy, v1alpha1.ReasonUnhealthy, v1alpha1.ReasonObjectLookupFailure,
		v1alpha1.ReasonInstallPending, v1alpha1.ReasonDependencyPending, v1alpha1.ReasonSuspended, v1alpha1.ReasonDryRun, v1alpha1.ReasonUninstalling,
		v1alpha1.ReasonUninstallFailed, v1alpha1.ReasonUnpackPending, v1alpha1.ReasonUnpacking, v1alpha1.ReasonUnpackSuccessful, v1alpha1.ReasonUnpackFailed,
		v1alpha1.ReasonSignatureMissing, v1alpha1.ReasonSignatureInvalid,
	}
}

// statuses watches a BundleDeployment. Each status must have each condition once, with a documented reason, and all for the generation that the
// status describes: requirements 4, 5 and 6.
type statuses struct {
	fixture *fixture
	changes watch.Interface
	last    *v1alpha1.BundleDeployment
}

// watching returns a client of the hub that can watch.
func (f *fixture) watching() client.WithWatch {
	f.Helper()

	connection, err := client.NewWithWatch(hub, client.Options{Scheme: f.Scheme()})
	if err != nil {
		f.Fatal(err)
	}

	return connection
}

func (f *fixture) watchStatuses() *statuses {
	f.Helper()

	changes, err := f.watching().Watch(f.Context(), &v1alpha1.BundleDeploymentList{}, client.MatchingFields{"metadata.name": f.name})
	if err != nil {
		f.Fatal(err)
	}

	f.Cleanup(changes.Stop)

	return &statuses{fixture: f, changes: changes}
}

// until checks the statuses up to the first one of the current generation that has the reason. An empty reason means the deletion.
func (s *statuses) until(reason string) {
	s.fixture.Helper()

	for change := range s.changes.ResultChan() {
		found, ok := change.Object.(*v1alpha1.BundleDeployment)
		if !ok {
			s.fixture.Fatalf("the watch has ended: %+v", change.Object)
		}

		s.last = found
		if change.Type != watch.Deleted && (found.Status.ObservedGeneration > 0 || len(found.Status.Conditions) > 0) {
			s.check(found)
		}

		if reason == "" && change.Type == watch.Deleted || found.Status.ObservedGeneration == found.Generation &&
			slices.ContainsFunc(found.Status.Conditions, func(condition metav1.Condition) bool { return condition.Reason == reason }) {
			return
		}
	}

	s.fixture.Fatalf("waited for %q; the last status is %+v", reason, s.last.Status)
}

func (s *statuses) check(found *v1alpha1.BundleDeployment) {
	s.fixture.Helper()

	var types []string

	for _, condition := range found.Status.Conditions {
		types = append(types, condition.Type)

		if !slices.Contains(reasons(), condition.Reason) || condition.ObservedGeneration != found.Status.ObservedGeneration {
			s.fixture.Errorf("in the status of generation %d: %+v", found.Status.ObservedGeneration, condition)
		}
	}

	slices.Sort(types)

	if want := []string{v1alpha1.TypeHasValidBundle, v1alpha1.TypeHealthy, v1alpha1.TypeInstalled}; !slices.Equal(types, want) ||
		found.Status.ObservedGeneration > found.Generation {
		s.fixture.Errorf("generation %d of %d has the conditions %v", found.Status.ObservedGeneration, found.Generation, types)
	}
}

// TestRequirement04Statuses verifies each status of a BundleDeployment, from its creation to its deletion.
func TestRequirement04Statuses(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		s := f.watchStatuses()
		first := f.content("1", f.configMap("one", "1"))
		f.create(first, func(made *v1alpha1.BundleDeployment) { made.Spec.DependsOn = []v1alpha1.Dependency{{Name: "none"}} })
		f.awaitBundle(first)
		f.unpack()
		s.until(v1alpha1.ReasonDependencyPending)
		f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.DependsOn = nil })
		s.until(v1alpha1.ReasonInstallationSucceeded)
		f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.Suspend = true })
		s.until(v1alpha1.ReasonSuspended)
		f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.Suspend = false })
		s.until(v1alpha1.ReasonHealthy)

		generation := f.deployment().Generation
		f.change(func(found *v1alpha1.BundleDeployment) { found.Labels = map[string]string{"team": "a"} })

		if found := f.deployment(); found.Generation != generation || found.Status.ObservedGeneration != generation {
			t.Errorf("a label has changed the generation %d to %d, observed is %d", generation, found.Generation, found.Status.ObservedGeneration)
		}

		missing := f.content("bad", "")
		f.upgrade(missing)
		s.until(v1alpha1.ReasonUnpackPending)
		f.awaitBundle(missing)
		f.unpack()
		s.until(v1alpha1.ReasonUnpackFailed)

		invalid := f.content("invalid", f.configMap("one", "2")+"apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: default}\nspec: {ports: [{port: 99999}]}\n")
		f.upgrade(invalid)
		f.awaitBundle(invalid)
		f.unpack()
		s.until(v1alpha1.ReasonUpgradeFailed)

		if err := f.Delete(t.Context(), f.deployment()); err != nil {
			t.Fatal(err)
		}

		s.until("")
	})
}
