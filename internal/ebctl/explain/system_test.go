package explain_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/ebctl/explain"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func TestSystemText(t *testing.T) {
	t.Parallel()

	const failed = "garden: 7 calls in a row have failed since 2026-05-01 10:04:40Z, the last one because it did not answer in time"

	cases := map[string]struct {
		reason string
		change func(*operatorapi.System)
		want   string
	}{
		"Back": {
			"the outage is over, the operation is about to notice",
			func(s *operatorapi.System) { s.State, s.Failures = "closed", 0 }, "garden answers; 3 of at most 32 calls are under way",
		},
		"Failing": {
			"calls are still made", func(s *operatorapi.System) { s.State = "closed" }, failed + "; 3 of at most 32 calls are under way",
		},
		"Away": {
			"no call is made for now",
			func(s *operatorapi.System) { s.State, s.NextTry = "open", ago(-2) }, failed + "; it is tried again in 2s",
		},
		"Trial": {"somebody finds out", func(s *operatorapi.System) { s.State = "half-open" }, failed + "; it is being tried again"},
		"No time told": {
			"a replica of another version may leave fields out",
			func(s *operatorapi.System) { s.State = "open" }, failed + "; it is being tried again",
		},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			system := operatorapi.System{
				Name: "garden", CallsInFlight: 3, CallsLimit: 32, Failures: 7, FailingSince: ago(20), LastFault: "it did not answer in time",
			}
			test.change(&system)

			explained := explain.Of(operation(func(o *operatorapi.Operation) { o.System = &system }), now)
			if got := explained.SystemText(); got != test.want {
				t.Errorf("%s:\ngot  %s\nwant %s", test.reason, got, test.want)
			}
		})
	}

	if got := explain.Of(operation(func(*operatorapi.Operation) {}), now).SystemText(); got != "" {
		t.Errorf("an operation that no system holds up tells %q", got)
	}
}
