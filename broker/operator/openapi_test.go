package operator

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorapitest"
)

func TestEveryStateOfRuntimesIsDescribed(t *testing.T) {
	var want []string
	for _, rule := range stateRules() {
		want = append(want, string(rule.State))
	}

	want = append(want, string(operatorapi.RuntimeStateDeleted)) // the state of leftovers
	slices.Sort(want)

	if diff := cmp.Diff(want, operatorapitest.Enum(t, "RuntimeState")); diff != "" {
		t.Errorf("states of runtimes: -want +got\n%s", diff)
	}
}
