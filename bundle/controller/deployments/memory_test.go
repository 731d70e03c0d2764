package deployments

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// TestRetryOthers checks that the deletion of a BundleDeployment makes the next attempt of others due that have failed, and of no others.
func TestRetryOthers(t *testing.T) {
	t.Parallel()

	began := time.Now()
	r := &Reconciler{Options: Options{Now: func() time.Time { return began }}, failing: map[string]bool{}}
	p := &pass{
		Reconciler: r, deployment: &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "failed"}},
		memory: &memory{failed: "bundle", retry: began.Add(time.Minute)},
	}

	p.setFailing(true)

	for _, step := range []struct {
		reason, deleted string
		names           []string
		due             bool
	}{
		{"its own deletion changes nothing", "failed", nil, false},
		{"another one may have owned an object", "other", []string{"failed"}, true},
	} {
		if names := r.retryOthers(step.deleted); !slices.Equal(names, step.names) || p.mayRetry("bundle") != step.due {
			t.Errorf("%s: got %v; an attempt is due: %t", step.reason, names, !step.due)
		}
	}

	p.setFailing(true)

	if p.mayRetry("bundle") {
		t.Error("another attempt is due at once after a further failure")
	}

	p.setFailing(false)

	if names := r.retryOthers("other"); len(names) > 0 {
		t.Errorf("an installed one is tried again: %v", names)
	}
}
