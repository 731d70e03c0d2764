package deprovisioning

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// newAvS returns an AvS with both evaluations of the instance, a client, and the records of the evaluations.
func newAvS(t *testing.T) (*fakeavs.AvS, *avs.Client, *stepstest.Objects) {
	t.Helper()

	simulated := fakeavs.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := fakeavs.Config(server.URL)
	config.Timeout = 2 * time.Second
	client := avs.New(config, http.DefaultTransport)

	internal, err := client.CreateInternal(t.Context(), avs.Cluster{InstanceID: instanceID})
	if err != nil {
		t.Fatal(err)
	}

	external, err := client.CreateExternal(t.Context(), avs.Cluster{InstanceID: instanceID})
	if err != nil {
		t.Fatal(err)
	}

	records := stepstest.New()
	for kind, id := range map[string]string{environment.KindInternalEvaluation: internal, environment.KindExternalEvaluation: external} {
		records.Records = append(records.Records, environment.OutsideObject{
			InstanceID: instanceID, System: environment.SystemAvS, Kind: kind, Key: id, State: environment.OutsideCreated,
		})
	}

	return simulated, client, records
}

// TestAvSFaults checks after which faults the removal is repeated, and the recorded state after the window.
//
//faults:table avs.md#removal
func TestAvSFaults(t *testing.T) {
	const (
		interval = 10 * time.Second
		lasting  = -1
		remove   = "deleteEvaluation"
		unlink   = "removeFromParent"
	)

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantWait time.Duration
	}{
		"is unreachable, or its response is lost/unreachable": {"an outage can pass", simulator.Fault{Unsent: true, Times: lasting}, interval},
		"is slow":                  {"a call has a timeout", simulator.Fault{Delay: time.Minute, Times: lasting}, interval},
		"returns no JSON/unlinked": {"a proxy may have answered", simulator.Fault{Operation: unlink, Body: "<html>"}, interval},
		"returns no JSON/removed":  {"a proxy may have answered", simulator.Fault{Operation: remove, Body: "<html>"}, interval},
		"returns no JSON/404":      {"a proxy without a backend does not know the evaluation", simulator.Fault{Operation: remove, Status: http.StatusNotFound, Body: "<html>"}, interval},
		"is unreachable, or its response is lost/lost: unlinked": {"a removal whose response was lost is repeated", simulator.Fault{Operation: unlink, Lost: true}, interval},
		"is unreachable, or its response is lost/lost: removed":  {"a removal whose response was lost is repeated", simulator.Fault{Operation: remove, Lost: true}, interval},
		"the token endpoint returns no token":                    {"the token is no JSON", simulator.Fault{Operation: simulator.TokenOperation, Body: "<html>"}, interval},
		"401 because a token has ended early":                    {"a token that ended early is replaced", simulator.Fault{Operation: remove, Status: http.StatusUnauthorized}, 0},
		"401 or 403 with a new token/401":                        {"the new token is rejected, too", simulator.Fault{Operation: remove, Status: http.StatusUnauthorized, Times: 2}, interval},
		"401 or 403 with a new token/403":                        {"an operator can correct the rights", simulator.Fault{Status: http.StatusForbidden}, interval},
		"429, 503 with Retry-After/429":                          {"the pause of the system counts", simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, 42 * time.Second},
		"429, 503 with Retry-After/503":                          {"at most five minutes", simulator.Fault{Operation: remove, Status: http.StatusServiceUnavailable, RetryAfter: 3600}, 5 * time.Minute},
		"408, 500 and above/408":                                 {"AvS has not read the whole request", simulator.Fault{Operation: remove, Status: http.StatusRequestTimeout}, interval},
		"409, 400 and other statuses/409":                        {"AvS may be busy with the evaluation", simulator.Fault{Operation: remove, Status: http.StatusConflict}, interval},
		"409, 400 and other statuses/400":                        {"only one text of 400 means that nothing is left to do", simulator.Fault{Operation: unlink, Status: http.StatusBadRequest}, interval},
		"408, 500 and above/500":                                 {"AvS may recover", simulator.Fault{Operation: unlink, Status: http.StatusInternalServerError}, interval},
		"408, 500 and above/503":                                 {"an overloaded system can recover", simulator.Fault{Status: http.StatusServiceUnavailable}, interval},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulated, client, records := newAvS(t)
			simulated.ExpireTokens()
			simulated.Inject(c.fault)

			step := removeEvaluations{client: client, objects: records}

			first, wait, err := run(t, step, newOperation(environment.Data{Instance: instance()}))
			if err != nil || wait != c.wantWait {
				t.Fatalf("%s: runs again after %s, %v; want %s", c.reason, wait, err, c.wantWait)
			}

			faulttable.Shows(t, "avs.md#removal", name, stepstest.Shown(first, err))

			if wait > 0 {
				if len(records.Records) == 0 {
					t.Errorf("%s: the records are gone before the evaluations", c.reason)
				}

				c.fault.Times = lasting
				simulated.Inject(c.fault)

				if _, wait, err := runLate(t, step, stored(t, first.Data), 5*time.Minute); err != nil || wait != 0 {
					t.Errorf("%s: after the window, the step runs again after %s, %v", c.reason, wait, err)
				}

				for _, record := range records.Records {
					if record.State != environment.OutsideLeftOver {
						t.Errorf("%s: after the window, the records are %v", c.reason, records.Lines())
					}
				}

				simulated.Reset()
				done(t, step, newOperation(stored(t, first.Data)))
			}

			if len(simulated.Evaluations())+len(records.Records) != 0 {
				t.Errorf("%s: left over: %v, %v", c.reason, simulated.Holds(), records.Lines())
			}
		})
	}
}

// TestAvSBreaker checks that the circuit breaker keeps the step from calling AvS, and that the records stay.
func TestAvSBreaker(t *testing.T) {
	simulated, _, records := newAvS(t)
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	system := upstream.New(upstream.Options{Name: "avs", Title: "AvS", Component: "avs", Calls: 1})
	step := removeEvaluations{client: avs.New(fakeavs.Config(server.URL), system.Transport(http.DefaultTransport)), objects: records}
	simulated.Inject(simulator.Fault{Operation: "removeFromParent", Status: http.StatusInternalServerError, Times: -1})

	runs := func(times int) {
		for range times {
			if _, wait, err := run(t, step, newOperation(environment.Data{Instance: instance()})); err != nil || wait <= 0 {
				t.Fatalf("runs again after %s, %v", wait, err)
			}
		}
	}

	runs(5)

	if got := system.Status().State; got != upstream.Open {
		t.Fatalf("after five failed calls, the circuit breaker is %s", got)
	}

	calls := len(simulated.Calls())

	runs(1)

	if got := len(simulated.Calls()); got != calls || len(records.Records) != 2 {
		t.Errorf("AvS was called %d times; the records are %v", got-calls, records.Lines())
	}
}

// TestAvSIsEmptyAlready removes evaluations that AvS no longer has. AvS rejects their removal from their parents with 400, and answers 404
// to their deletion.
//
//faults:row avs.md#removal 404
//faults:row avs.md#removal 400 with the text does not contain subevaluation
func TestAvSIsEmptyAlready(t *testing.T) {
	simulated, client, records := newAvS(t)
	for _, object := range records.Records {
		if err := client.Remove(t.Context(), object.Key, "aws", true); err != nil {
			t.Fatal(err)
		}
	}

	after := done(t, removeEvaluations{client: client, objects: records}, newOperation(environment.Data{Instance: instance()}))

	for _, row := range []string{"404", "400 with the text does not contain subevaluation"} {
		faulttable.Shows(t, "avs.md#removal", row, stepstest.Shown(after, nil))
	}

	if len(records.Records) != 0 || len(simulated.Holds()) != 0 {
		t.Errorf("left over: %v, %v", simulated.Holds(), records.Lines())
	}
}

// TestAvSLeftOvers checks what stays after the step has given up on an evaluation, and that the other evaluations are still removed.
//
//faults:row avs.md#removal the ID of the evaluation is unknown
func TestAvSLeftOvers(t *testing.T) {
	simulated, client, records := newAvS(t)

	for _, object := range []environment.OutsideObject{
		{Kind: environment.KindWithoutID(environment.KindInternalEvaluation), Key: "1", State: environment.OutsideUncertain},
		{Kind: environment.KindMaintenance(environment.KindInternalEvaluation), Key: "ACTIVE", State: environment.OutsideCreated},
	} {
		object.InstanceID, object.System = instanceID, environment.SystemAvS
		records.Records = append(records.Records, object)
	}

	external := records.Of(environment.KindExternalEvaluation)
	external.Key, external.State = "", environment.OutsideCreating

	if err := records.SetObject(t.Context(), process.Record{}, external); err != nil {
		t.Fatal(err)
	}

	after := done(t, removeEvaluations{client: client, objects: records}, newOperation(environment.Data{Instance: instance()}))
	faulttable.Shows(t, "avs.md#removal", "the ID of the evaluation is unknown", stepstest.Shown(after, nil))

	want := []string{"external evaluation: left over", "internal evaluation without ID: left over 1"}
	if diff := cmp.Diff(want, records.Lines()); diff != "" || len(simulated.Holds()) != 1 {
		t.Errorf("AvS has %v; records -want +got\n%s", simulated.Holds(), diff)
	}
}

// TestAvSWithoutACall checks when the step calls AvS at all.
//
//faults:row avs.md#removal is turned off
func TestAvSWithoutACall(t *testing.T) {
	simulated, client, records := newAvS(t)
	before := len(simulated.Calls())

	records.Lost = true
	if _, _, err := run(t, removeEvaluations{client: client, objects: records}, newOperation(environment.Data{})); !failure.Is(err, failure.Transient) {
		t.Errorf("without its lease, the step returns %v", err)
	}

	records.Lost = false
	off := done(t, removeEvaluations{objects: records}, newOperation(environment.Data{}))
	faulttable.Shows(t, "avs.md#removal", "is turned off", stepstest.Shown(off, nil))

	want := []string{"external evaluation: left over 102", "internal evaluation: left over 101"}
	if diff := cmp.Diff(want, records.Lines()); diff != "" {
		t.Errorf("with AvS turned off, -want +got\n%s", diff)
	}

	records.Records = nil
	done(t, removeEvaluations{client: client, objects: records}, newOperation(environment.Data{}))

	if got := len(simulated.Calls()); got != before {
		t.Errorf("AvS was called %d times", got-before)
	}
}
