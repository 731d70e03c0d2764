package auditlog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/storage/auditlog"
)

func TestDifference(t *testing.T) {
	before, after := auditlog.Difference(
		auditlog.Fields{"plan": "aws", "zones": []string{"a", "b"}, "min": 1, "gone": true},
		auditlog.Fields{"plan": "aws", "zones": []string{"a"}, "min": 1, "new": 2},
	)

	want := []auditlog.Fields{{"zones": []string{"a", "b"}, "gone": true}, {"zones": []string{"a"}, "new": 2}}
	if diff := cmp.Diff(want, []auditlog.Fields{before, after}); diff != "" {
		t.Errorf("changed fields: -want +got\n%s", diff)
	}
}
