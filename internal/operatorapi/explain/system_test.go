package explain_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
)

func TestSystemText(t *testing.T) {
	t.Parallel()

	const failed = "garden: 7 failed calls in a row since 2026-05-01 10:04:40Z; last error: it did not respond in time"

	cases := map[string]struct {
		reason string
		change func(*operatorapi.System)
		want   string
	}{
		"Available": {
			"the outage is over",
			func(s *operatorapi.System) { s.State, s.Failures = "closed", 0 }, "garden is available; 3 of at most 32 calls in flight",
		},
		"Failing": {
			"the breaker is still closed", func(s *operatorapi.System) { s.State = "closed" }, failed + "; 3 of at most 32 calls in flight",
		},
		"FailedOnce": {
			"one failure is not a row",
			func(s *operatorapi.System) { s.State, s.Failures = "closed", 1 },
			"garden: 1 failed call since 2026-05-01 10:04:40Z; last error: it did not respond in time; 3 of at most 32 calls in flight",
		},
		"Unavailable": {
			"the breaker is open",
			func(s *operatorapi.System) { s.State, s.NextTry = "open", ago(-2) }, failed + "; next call in 2s",
		},
		"Trial": {"the breaker is half-open", func(s *operatorapi.System) { s.State = "half-open" }, failed + "; a trial call is in progress"},
		"NoNextTry": {
			"a replica of another version may omit fields",
			func(s *operatorapi.System) { s.State = "open" }, failed + "; a trial call is in progress",
		},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			system := operatorapi.System{
				Name: "garden", CallsInFlight: 3, CallsLimit: 32, Failures: 7, FailingSince: ago(20), LastFault: "it did not respond in time",
			}
			test.change(&system)

			explained := explain.Of(operation(func(o *operatorapi.Operation) { o.System = system }), now)
			if got := explained.SystemText(); got != test.want {
				t.Errorf("%s:\ngot  %s\nwant %s", test.reason, got, test.want)
			}
		})
	}

	if got := explain.Of(operation(func(*operatorapi.Operation) {}), now).SystemText(); got != "" {
		t.Errorf("an explanation without a system must have no text, got %q", got)
	}
}
