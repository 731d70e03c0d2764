package deprovisioning

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/edp"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process"
)

// fakeObjects records the objects of instances by instance. lost makes all writes fail.
type fakeObjects struct {
	records map[string]environment.OutsideObject
	lost    bool
}

func (f *fakeObjects) FindObject(_ context.Context, instanceID, system, kind string) (environment.OutsideObject, error) {
	object := f.records[instanceID]
	object.InstanceID, object.System, object.Kind = instanceID, system, kind

	return object, nil
}

func (f *fakeObjects) ObjectsIn(_ context.Context, instanceID, system string) ([]environment.OutsideObject, error) {
	var found []environment.OutsideObject

	for _, object := range f.records {
		if object.InstanceID == instanceID && object.System == system {
			found = append(found, object)
		}
	}

	return found, nil
}

func (f *fakeObjects) SetObject(_ context.Context, _ process.Record, object environment.OutsideObject) error {
	if f.lost {
		return errLost
	}

	f.records[object.InstanceID] = object

	return nil
}

func (f *fakeObjects) RemoveObject(_ context.Context, _ process.Record, object environment.OutsideObject) error {
	if f.lost {
		return errLost
	}

	delete(f.records, object.InstanceID)

	return nil
}

func (f *fakeObjects) Sharing(_ context.Context, object environment.OutsideObject) ([]environment.OutsideObject, error) {
	var others []environment.OutsideObject

	for id, other := range f.records {
		if id != object.InstanceID && other.Key == object.Key {
			others = append(others, other)
		}
	}

	return others, nil
}

// newEDP returns an EDP in which the subaccount is registered, a client, and the record of the instance.
func newEDP(t *testing.T) (*fakeedp.EDP, *edp.Client, *fakeObjects) {
	t.Helper()

	simulated := fakeedp.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := edp.DefaultConfig()
	config.AuthURL, config.AdminURL, config.Secret, config.Timeout = server.URL, server.URL, fakeedp.Secret, 200*time.Millisecond
	client := edp.New(config, http.DefaultTransport)

	if err := client.Register(t.Context(), edp.Tenant{Name: "sub-1", PlatformRegion: "cf-eu10", PlanName: "aws"}); err != nil {
		t.Fatal(err)
	}

	return simulated, client, &fakeObjects{records: map[string]environment.OutsideObject{
		instanceID: {InstanceID: instanceID, Key: "sub-1", State: environment.OutsideCreated},
	}}
}

// TestEDPFaults has a case for each row of the table "Deregistration" in docs/operator/integrations/edp.md.
func TestEDPFaults(t *testing.T) {
	const lasting = -1

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantWait time.Duration
	}{
		"Away":     {"an outage can pass", simulator.Fault{Unsent: true, Times: lasting}, edpInterval},
		"Lost":     {"a removal whose response was lost is repeated", simulator.Fault{Operation: "deleteTenant", Lost: true}, edpInterval},
		"Slow":     {"a call has a timeout", simulator.Fault{Delay: time.Minute, Times: lasting}, edpInterval},
		"Garbled":  {"the token is no JSON", simulator.Fault{Operation: simulator.TokenOperation, Body: "<html>"}, edpInterval},
		"429":      {"the pause of the system counts", simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, 42 * time.Second},
		"503":      {"an overloaded system can recover", simulator.Fault{Status: http.StatusServiceUnavailable}, edpInterval},
		"Denied":   {"an operator can correct the credentials", simulator.Fault{Status: http.StatusForbidden}, edpInterval},
		"Rejected": {"a registration that began before may have added metadata", simulator.Fault{Status: http.StatusBadRequest}, edpInterval},
		"Gone":     {"an object that does not exist is removed", simulator.Fault{Status: http.StatusNotFound, Times: lasting}, 0},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated, client, objects := newEDP(t)
			simulated.ExpireTokens()
			simulated.Inject(c.fault)

			step := deregisterEDP{client: client, objects: objects}

			first, wait, err := run(t, step, newOperation(environment.Data{Instance: instance()}))
			if err != nil || wait != c.wantWait {
				t.Fatalf("%s: runs again after %s, %v; want %s", c.reason, wait, err, c.wantWait)
			}

			if wait == 0 {
				if len(objects.records) != 0 {
					t.Errorf("%s: the records %v are left", c.reason, objects.records)
				}

				return
			}

			simulated.Reset()
			done(t, step, newOperation(stored(t, first.Data)))

			if len(simulated.Tenants())+len(objects.records) != 0 {
				t.Errorf("%s: left over: %v, %v", c.reason, simulated.Tenants(), objects.records)
			}
		})
	}
}

func TestEDPIsRemovedWithTheLastInstance(t *testing.T) {
	other := func(state environment.OutsideState) environment.OutsideObject {
		return environment.OutsideObject{InstanceID: "other", Key: "sub-1", State: state}
	}

	cases := map[string]struct {
		reason string
		other  environment.OutsideObject
		want   int // data tenants
	}{
		"used":     {"another instance of the subaccount needs the registration", other(environment.OutsideCreated), 1},
		"creating": {"another instance is about to use it", other(environment.OutsideCreating), 1},
		"removing": {"of two removals at the same time, one has to remove it", other(environment.OutsideRemoving), 0},
		"left":     {"nobody uses what was left over", other(environment.OutsideLeftOver), 0},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated, client, objects := newEDP(t)
			objects.records["other"] = c.other

			done(t, deregisterEDP{client: client, objects: objects}, newOperation(environment.Data{Instance: instance()}))

			if got := len(simulated.Tenants()); got != c.want || len(objects.records) != 1 {
				t.Errorf("%s: %d data tenants, records %v", c.reason, got, objects.records)
			}
		})
	}
}

func TestEDPWithoutACall(t *testing.T) {
	simulated, client, objects := newEDP(t)
	before := len(simulated.Calls())

	objects.lost = true
	if _, _, err := run(t, deregisterEDP{client: client, objects: objects}, newOperation(environment.Data{})); !failure.Is(err, failure.Transient) {
		t.Errorf("without its lease, the step returns %v", err)
	}

	objects.lost = false
	done(t, deregisterEDP{objects: objects}, newOperation(environment.Data{}))

	if got := objects.records[instanceID].State; got != environment.OutsideLeftOver {
		t.Errorf("with EDP turned off, the record is %q", got)
	}

	delete(objects.records, instanceID)
	done(t, deregisterEDP{client: client, objects: objects}, newOperation(environment.Data{}))

	if diff := cmp.Diff(before, len(simulated.Calls())); diff != "" {
		t.Errorf("EDP was called, -want +got: %s", diff)
	}
}
