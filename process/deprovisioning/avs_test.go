package deprovisioning

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/avs"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process"
)

// avsRecords are the records of the instance in AvS by kind. lost makes all writes fail.
type avsRecords struct {
	fakeObjects

	kinds map[string]environment.OutsideObject
}

func (r *avsRecords) ObjectsIn(context.Context, string, string) ([]environment.OutsideObject, error) {
	var found []environment.OutsideObject
	for _, object := range r.kinds {
		found = append(found, object)
	}

	slices.SortFunc(found, func(one, other environment.OutsideObject) int { return strings.Compare(one.Kind, other.Kind) })

	return found, nil
}

func (r *avsRecords) SetObject(_ context.Context, _ process.Record, object environment.OutsideObject) error {
	if r.lost {
		return errLost
	}

	r.kinds[object.Kind] = object

	return nil
}

func (r *avsRecords) RemoveObject(_ context.Context, _ process.Record, object environment.OutsideObject) error {
	if r.lost {
		return errLost
	}

	delete(r.kinds, object.Kind)

	return nil
}

// states returns the states of the records by kind.
func (r *avsRecords) states() map[string]environment.OutsideState {
	states := map[string]environment.OutsideState{}
	for kind, object := range r.kinds {
		states[kind] = object.State
	}

	return states
}

// newAvS returns an AvS with both evaluations of the instance, a client, and the records of the evaluations.
func newAvS(t *testing.T) (*fakeavs.AvS, *avs.Client, *avsRecords) {
	t.Helper()

	simulated := fakeavs.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := avs.DefaultConfig()
	config.API, config.TokenURL = server.URL+fakeavs.API, server.URL+fakeavs.Token
	config.ClientID, config.Username, config.Password = fakeavs.ClientID, fakeavs.User, fakeavs.Password
	config.ParentID, config.Timeout = 1, 200*time.Millisecond
	client := avs.New(config, http.DefaultTransport)

	internal, err := client.CreateInternal(t.Context(), avs.Cluster{InstanceID: instanceID})
	if err != nil {
		t.Fatal(err)
	}

	external, err := client.CreateExternal(t.Context(), avs.Cluster{InstanceID: instanceID})
	if err != nil {
		t.Fatal(err)
	}

	records := &avsRecords{kinds: map[string]environment.OutsideObject{}}
	for kind, id := range map[string]string{environment.KindInternalEvaluation: internal, environment.KindExternalEvaluation: external} {
		records.kinds[kind] = environment.OutsideObject{
			InstanceID: instanceID, System: environment.SystemAvS, Kind: kind, Key: id, State: environment.OutsideCreated,
		}
	}

	return simulated, client, records
}

// TestAvSFaults has a case for each row of the table "Removal" in docs/operator/integrations/avs.md.
func TestAvSFaults(t *testing.T) {
	const lasting = -1

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantWait time.Duration
	}{
		"Away":     {"an outage can pass", simulator.Fault{Unsent: true, Times: lasting}, avsInterval},
		"Unlinked": {"a removal whose response was lost is repeated", simulator.Fault{Operation: "removeFromParent", Lost: true}, avsInterval},
		"Lost":     {"a removal whose response was lost is repeated", simulator.Fault{Operation: "deleteEvaluation", Lost: true}, avsInterval},
		"Slow":     {"a call has a timeout", simulator.Fault{Delay: time.Minute, Times: lasting}, avsInterval},
		"Garbled":  {"the token is no JSON", simulator.Fault{Operation: simulator.TokenOperation, Body: "<html>"}, avsInterval},
		"401":      {"a token that ended early is replaced", simulator.Fault{Operation: "deleteEvaluation", Status: http.StatusUnauthorized}, 0},
		"403":      {"an operator can correct the rights", simulator.Fault{Status: http.StatusForbidden}, avsInterval},
		"409":      {"AvS may be busy with the evaluation", simulator.Fault{Operation: "deleteEvaluation", Status: http.StatusConflict}, avsInterval},
		"429":      {"the pause of the system counts", simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, 42 * time.Second},
		"503":      {"an overloaded system can recover", simulator.Fault{Status: http.StatusServiceUnavailable}, avsInterval},
		"400":      {"only one text of 400 means that nothing is left to do", simulator.Fault{Operation: "removeFromParent", Status: http.StatusBadRequest}, avsInterval},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated, client, records := newAvS(t)
			simulated.ExpireTokens()
			simulated.Inject(c.fault)

			step := removeEvaluations{client: client, objects: records}

			first, wait, err := run(t, step, newOperation(environment.Data{Instance: instance()}))
			if err != nil || wait != c.wantWait {
				t.Fatalf("%s: runs again after %s, %v; want %s", c.reason, wait, err, c.wantWait)
			}

			if wait > 0 {
				if len(records.kinds) == 0 {
					t.Errorf("%s: the records are gone before the evaluations", c.reason)
				}

				simulated.Reset()
				done(t, step, newOperation(stored(t, first.Data)))
			}

			if len(simulated.Evaluations())+len(records.kinds) != 0 {
				t.Errorf("%s: left over: %v, %v", c.reason, simulated.Holds(), records.states())
			}
		})
	}
}

func TestAvSIsEmptyAlready(t *testing.T) {
	simulated, client, records := newAvS(t)
	for _, object := range records.kinds {
		if err := client.Remove(t.Context(), object.Key, "aws", true); err != nil {
			t.Fatal(err)
		}
	}

	done(t, removeEvaluations{client: client, objects: records}, newOperation(environment.Data{Instance: instance()}))

	if len(records.kinds) != 0 || len(simulated.Holds()) != 0 {
		t.Errorf("left over: %v, %v", simulated.Holds(), records.states())
	}
}

// TestAvSLeftOvers checks what stays when a removal is given up, and that it does not keep the others from being removed.
func TestAvSLeftOvers(t *testing.T) {
	simulated, client, records := newAvS(t)

	for _, object := range []environment.OutsideObject{
		{Kind: environment.KindWithoutID(environment.KindInternalEvaluation), Key: "1", State: environment.OutsideUncertain},
		{Kind: environment.KindMaintenance(environment.KindInternalEvaluation), Key: "ACTIVE", State: environment.OutsideCreated},
	} {
		object.InstanceID, object.System = instanceID, environment.SystemAvS
		records.kinds[object.Kind] = object
	}

	external := records.kinds[environment.KindExternalEvaluation]
	external.Key, external.State = "", environment.OutsideCreating
	records.kinds[external.Kind] = external

	done(t, removeEvaluations{client: client, objects: records}, newOperation(environment.Data{Instance: instance()}))

	want := map[string]environment.OutsideState{
		environment.KindWithoutID(environment.KindInternalEvaluation): environment.OutsideLeftOver,
		environment.KindExternalEvaluation:                            environment.OutsideLeftOver,
	}
	if diff := cmp.Diff(want, records.states()); diff != "" || len(simulated.Holds()) != 1 {
		t.Errorf("AvS has %v; records -want +got\n%s", simulated.Holds(), diff)
	}
}

func TestAvSWithoutACall(t *testing.T) {
	simulated, client, records := newAvS(t)
	before := len(simulated.Calls())

	records.lost = true
	if _, _, err := run(t, removeEvaluations{client: client, objects: records}, newOperation(environment.Data{})); !failure.Is(err, failure.Transient) {
		t.Errorf("without its lease, the step returns %v", err)
	}

	records.lost = false
	done(t, removeEvaluations{objects: records}, newOperation(environment.Data{}))

	want := map[string]environment.OutsideState{
		environment.KindInternalEvaluation: environment.OutsideLeftOver, environment.KindExternalEvaluation: environment.OutsideLeftOver,
	}
	if diff := cmp.Diff(want, records.states()); diff != "" {
		t.Errorf("with AvS turned off, -want +got\n%s", diff)
	}

	clear(records.kinds)
	done(t, removeEvaluations{client: client, objects: records}, newOperation(environment.Data{}))

	if got := len(simulated.Calls()); got != before {
		t.Errorf("AvS was called %d times", got-before)
	}
}
