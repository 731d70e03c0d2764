package upgrading

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/maintenance"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// TestMaintenanceFaults checks the message after each fault, whether each of the two steps is repeated, and that the upgrade continues after
// the window.
//
//faults:table avs.md#maintenance
func TestMaintenanceFaults(t *testing.T) {
	const (
		lasting     = -1
		own         = time.Duration(0) // the interval of the step
		set         = "setLifecycle"
		credentials = ": an operator must correct APP_AVS_OAUTH_TOKEN_ENDPOINT, APP_AVS_OAUTH_CLIENT_ID, APP_AVS_OAUTH_USERNAME and APP_AVS_OAUTH_PASSWORD"
		could       = "AvS could not change the state of the evaluation: it "
	)

	cases := map[string]struct {
		fault    simulator.Fault
		wantText string // empty: the step is done
		wantWait time.Duration
	}{
		"is unreachable, or its response is lost/unreachable": {simulator.Fault{Unsent: true, Times: lasting}, "AvS cannot be reached", own},
		"is slow":                             {simulator.Fault{Operation: set, Delay: time.Minute}, "AvS did not respond within 2s", own},
		"the token endpoint returns no token": {simulator.Fault{Operation: simulator.TokenOperation, Body: "<html>"}, "the token endpoint of AvS returned no token", own},
		"is unreachable, or its response is lost/lost": {simulator.Fault{Operation: set, Lost: true}, "AvS cannot be reached", own},
		"returns no JSON":                          {simulator.Fault{Operation: set, Body: "<html>"}, could + "returned a response that is not the expected JSON", own},
		"401 because a token has ended early":      {simulator.Fault{Operation: set, Status: http.StatusUnauthorized}, "", own},
		"401 or 403 with a new token/401":          {simulator.Fault{Operation: set, Status: http.StatusUnauthorized, Times: 2}, "AvS rejects the credentials with HTTP status 401" + credentials, own},
		"404: somebody has removed the evaluation": {simulator.Fault{Operation: set, Status: http.StatusNotFound}, "", own},
		"429, 503 with Retry-After/429":            {simulator.Fault{Operation: set, Status: http.StatusTooManyRequests, RetryAfter: 42}, could + "returned HTTP status 429 Too Many Requests", 42 * time.Second},
		"429, 503 with Retry-After/503":            {simulator.Fault{Operation: set, Status: http.StatusServiceUnavailable, RetryAfter: 3600}, could + "returned HTTP status 503 Service Unavailable", 5 * time.Minute},
		"400, 409 and other statuses/400":          {simulator.Fault{Operation: set, Status: http.StatusBadRequest}, could + "rejects the request with HTTP status 400 Bad Request", own},
		"401 or 403 with a new token/403":          {simulator.Fault{Operation: set, Status: http.StatusForbidden}, "AvS rejects the credentials with HTTP status 403" + credentials, own},
		"408, 500 and above/408":                   {simulator.Fault{Operation: set, Status: http.StatusRequestTimeout}, could + "returned HTTP status 408 Request Timeout", own},
		"400, 409 and other statuses/409":          {simulator.Fault{Operation: set, Status: http.StatusConflict}, could + "rejects the request with HTTP status 409 Conflict", own},
		"408, 500 and above/500":                   {simulator.Fault{Operation: set, Status: http.StatusInternalServerError}, could + "returned HTTP status 500 Internal Server Error", own},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, ends := range []bool{false, true} {
				simulated, maintained := newMaintenance(t)
				step, call, interval := beginMaintenance(maintained), maintained.Begin, 30*time.Second

				if ends {
					if err := maintained.Begin(t.Context(), upgrade(0).Record); err != nil {
						t.Fatal(err)
					}

					step, call, interval = endMaintenance(maintained), maintained.End, 10*time.Second
				}

				simulated.ExpireTokens()
				simulated.Inject(c.fault)

				if err := call(t.Context(), upgrade(0).Record); (err != nil) != (c.wantText != "") || err != nil && failure.Of(err).Text != c.wantText {
					t.Errorf("%s shows %v, want %q", step.Name(), err, c.wantText)
				}

				if c.wantText == "" {
					after, _, err := step.Run(t.Context(), upgrade(0), logging.Discard())
					faulttable.Shows(t, "avs.md#maintenance", name, stepstest.Shown(after, err))

					continue
				}

				simulated.Reset()
				c.fault.Times = lasting
				simulated.ExpireTokens()
				simulated.Inject(c.fault)

				if c.wantWait > 0 {
					interval = c.wantWait
				}

				after, wait, err := step.Run(t.Context(), upgrade(0), logging.Discard())
				if err != nil || wait != interval {
					t.Errorf("%s runs again after %s, %v, want %s", step.Name(), wait, err, interval)
				}

				faulttable.Shows(t, "avs.md#maintenance", name, stepstest.Shown(after, err))

				if _, wait, err := step.Run(t.Context(), upgrade(5*time.Minute), logging.Discard()); err != nil || wait != 0 {
					t.Errorf("after the window, %s runs again after %s, %v", step.Name(), wait, err)
				}

				simulated.Reset()

				if _, wait, err := step.Run(t.Context(), upgrade(0), logging.Discard()); err != nil || wait != 0 {
					t.Errorf("after the fault, %s runs again after %s, %v", step.Name(), wait, err)
				}

				if got := simulated.Lifecycles()["101"]; got != map[bool]avs.Lifecycle{false: avs.Maintenance, true: avs.Active}[ends] {
					t.Errorf("after %s, the evaluation is %s", step.Name(), got)
				}
			}
		})
	}
}

// newMaintenance returns an AvS with the internal evaluation of the instance.
func newMaintenance(t *testing.T) (*fakeavs.AvS, maintenance.Maintenance) {
	t.Helper()

	simulated := fakeavs.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := fakeavs.Config(server.URL)
	config.Timeout = 2 * time.Second
	client := avs.New(config, http.DefaultTransport)

	id, err := client.CreateInternal(t.Context(), avs.Cluster{InstanceID: "instance-1"})
	if err != nil {
		t.Fatal(err)
	}

	return simulated, maintenance.Maintenance{AvS: client, Objects: stepstest.New(environment.OutsideObject{
		InstanceID: "instance-1", System: environment.SystemAvS, Kind: environment.KindInternalEvaluation, Key: id, State: environment.OutsideCreated,
	})}
}

// upgrade returns an operation whose step has been failing for the given time.
func upgrade(failing time.Duration) Operation {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	return process.NewFailingOperation(process.Record{ID: "op-1", InstanceID: "instance-1"},
		environment.Data{Upgrade: &environment.Upgrade{}}, began, began.Add(failing))
}
