package operator_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
)

// broken is a transport that fails every request. Its value is the component that the errors name.
type broken string

func (b broken) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, failure.New(failure.Transient, "away").WithReason(failure.ReasonSystemUnavailable, string(b))
}

func newSystem(component string) *upstream.System {
	return upstream.New(upstream.Options{Name: component, Component: component, Title: "it", Calls: 3})
}

// unavailableSystem returns an upstream system with an open circuit breaker.
func unavailableSystem(t *testing.T, component string) *upstream.System {
	t.Helper()

	system := newSystem(component)
	client := http.Client{Transport: system.Transport(broken(component))}

	for system.Status().State == upstream.Closed {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://system", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}

		if response, err := client.Do(request); err == nil {
			_ = response.Body.Close()

			t.Fatal("a call succeeded, want an error")
		}
	}

	return system
}

func TestSystemOfAWaitingOperation(t *testing.T) {
	system := unavailableSystem(t, "provisioner")
	status := system.Status()
	since, next := status.FailingSince.UTC(), status.NextTry.UTC()

	away := operatorapi.System{
		Name: "provisioner", State: "open", CallsLimit: 3, Failures: status.Failures, FailingSince: since,
		LastFault: "it could not be reached", NextTry: next, RecentCalls: status.Latency.Calls,
		MedianSeconds: status.Latency.Median.Seconds(), P95Seconds: status.Latency.P95.Seconds(),
	}

	cases := map[string]struct {
		reason    string
		component string
		state     process.State
		want      operatorapi.System
	}{
		"HeldUp":    {"a waiting operation shows the state of the system that delays it", "provisioner", process.InProgress, away},
		"Other":     {"the component is not a system of the broker", "gardener", process.InProgress, operatorapi.System{}},
		"NoProblem": {"the operation has no problem", "", process.InProgress, operatorapi.System{}},
		"Ended":     {"an ended operation does not show the current state", "provisioner", process.Failed, operatorapi.System{}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(options *operator.Options) {
				options.Systems = []*upstream.System{unavailableSystem(t, "other"), system}
			})

			id := b.operation("one", environment.KindProvision, test.state, func(progress *process.Progress) {
				progress.Record.Problem.Message, progress.Record.Problem.Component = "not called", test.component
			})

			got := read[operatorapi.Operation](b, b.want(test.reason, b.do("viewer", "GET", "/operations/"+id), http.StatusOK)).System
			if got.State == "half-open" { // the pause has already ended
				got.State, got.NextTry = away.State, away.NextTry
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				b.Errorf("%s: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

// TestStatus checks that the status has the version of this program and each system that the replica calls.
func TestStatus(t *testing.T) {
	away, idle := unavailableSystem(t, "provisioner"), newSystem("gardener")
	b := newBench(t, func(options *operator.Options) { options.Systems = []*upstream.System{away, idle} })

	got := read[operatorapi.Status](b, b.want("viewers may read", b.do("viewer", "GET", "/status"), http.StatusOK))

	build := program.ReadBuild()
	if got.Version != build.Version || got.Commit != build.Commit {
		t.Errorf("the version is %s (%s), want %s (%s)", got.Version, got.Commit, build.Version, build.Commit)
	}

	want := []operatorapi.System{{
		Name: "provisioner", State: "open", CallsLimit: 3, Failures: away.Status().Failures, FailingSince: away.Status().FailingSince.UTC(),
		LastFault: "it could not be reached", NextTry: away.Status().NextTry.UTC(), RecentCalls: away.Status().Failures,
		MedianSeconds: away.Status().Latency.Median.Seconds(), P95Seconds: away.Status().Latency.P95.Seconds(),
	}, {Name: "gardener", State: "closed", CallsLimit: 3}}

	if diff := cmp.Diff(want, got.Systems); diff != "" {
		t.Errorf("systems: -want +got\n%s", diff)
	}
}
