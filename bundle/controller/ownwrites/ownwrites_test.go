package ownwrites_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/controller/ownwrites"
)

func TestWrites(t *testing.T) {
	of := func(name, version string) *v1alpha1.Bundle {
		return &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}

	for name, row := range map[string]struct {
		reason string
		cached *v1alpha1.Bundle
		after  time.Duration
		forget bool
		want   bool
	}{
		"older":         {reason: "the cache lacks the write", cached: of("a", "99"), want: true},
		"same":          {reason: "the cache has the write", cached: of("a", "100")},
		"newer":         {reason: "the cache has a later write of somebody else", cached: of("a", "1000")},
		"other":         {reason: "nothing was written to this object", cached: of("b", "99")},
		"removed":       {reason: "the object does not exist any more", cached: of("a", "99"), forget: true},
		"restored":      {reason: "the cluster was restored from a backup", cached: of("a", "99"), after: 10 * time.Second},
		"still delayed": {reason: "the watch is slow", cached: of("a", "99"), after: 9 * time.Second, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				writes := &ownwrites.Writes{}
				writes.Record(of("a", "100"))
				time.Sleep(row.after)

				if row.forget {
					writes.Forget("a")
				}

				if got := writes.Missing(row.cached); got != row.want {
					t.Errorf("%s: Missing is %t", row.reason, got)
				}
			})
		})
	}
}

func TestRetry(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "bundles"}, "a", errors.New("changed"))
	lost := errors.New("lost")

	for name, row := range map[string]struct {
		reason string
		err    error
		after  time.Duration
		want   error
	}{
		"conflict":         {"the cache is behind for a moment", conflict, time.Second, nil},
		"wrapped conflict": {"a pass may have several errors", errors.Join(nil, fmt.Errorf("writing the status: %w", conflict)), time.Second, nil},
		"other":            {"the queue doubles the pause", lost, 0, lost},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := ownwrites.Retry(row.err)
			if result.RequeueAfter != row.after || !errors.Is(err, row.want) {
				t.Errorf("%s: after %s, %v", row.reason, result.RequeueAfter, err)
			}
		})
	}
}
