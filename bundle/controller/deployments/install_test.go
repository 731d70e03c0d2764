package deployments

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// away is a Content that needs the Kubernetes version of a cluster that does not respond.
type away struct{}

// Load implements Content.
func (away) Load(context.Context, Release) (Loaded, error) {
	return Loaded{}, failure.New(failure.Transient, "the cluster does not respond").WithReason(failure.ReasonSystemUnavailable, failure.ComponentRuntime)
}

// TestDryRunWhileAway checks that a dry run does not blame the Bundle for a cluster that does not respond.
func TestDryRunWhileAway(t *testing.T) {
	p := &pass{
		Reconciler: &Reconciler{Options: Options{Now: time.Now, Content: away{}, UnreachableInterval: time.Minute}},
		deployment: &v1alpha1.BundleDeployment{}, status: &v1alpha1.BundleDeploymentStatus{}, memory: &memory{},
	}
	p.begin()
	p.set(v1alpha1.TypeHasValidBundle, metav1.ConditionTrue, v1alpha1.ReasonUnpackSuccessful, "unpacked")

	after, err := p.dryRun(t.Context(), &bundles{desired: &v1alpha1.Bundle{}})
	if err != nil || after < time.Minute || !p.memory.away {
		t.Errorf("got %s, %v; away: %v", after, err, p.memory.away)
	}

	if !meta.IsStatusConditionTrue(p.status.Conditions, v1alpha1.TypeHasValidBundle) {
		t.Errorf("the Bundle is not valid: %v", p.status.Conditions)
	}

	installed := meta.FindStatusCondition(p.status.Conditions, v1alpha1.TypeInstalled)
	if installed.Status != metav1.ConditionUnknown || installed.Reason != v1alpha1.ReasonErrorGettingClient {
		t.Errorf("the condition is %+v", installed)
	}
}
