package deprovisioning

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// registration returns the record of an instance of the subaccount.
func registration(instanceID string, state environment.OutsideState) environment.OutsideObject {
	return environment.OutsideObject{
		InstanceID: instanceID, System: environment.SystemEDP, Kind: environment.KindDataTenant, Key: "sub-1", State: state,
	}
}

// newEDP returns an EDP in which the subaccount is registered, a client, and the record of the instance.
func newEDP(t *testing.T) (*fakeedp.EDP, *edp.Client, *stepstest.Objects) {
	t.Helper()

	simulated := fakeedp.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := edp.DefaultConfig()
	config.AuthURL, config.AdminURL, config.Secret, config.Timeout = server.URL, server.URL, fakeedp.Secret, time.Second
	client := edp.New(config, http.DefaultTransport)

	if err := client.Register(t.Context(), edp.Tenant{Name: "sub-1", PlatformRegion: "cf-eu10", PlanName: "aws"}); err != nil {
		t.Fatal(err)
	}

	return simulated, client, stepstest.New(registration(instanceID, environment.OutsideCreated))
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
		"401":      {"a token may have ended early", simulator.Fault{Operation: simulator.TokenOperation, Status: http.StatusUnauthorized}, edpInterval},
		"408":      {"a gateway may have lost the request", simulator.Fault{Operation: "deleteTenant", Status: http.StatusRequestTimeout}, edpInterval},
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
				if len(objects.Records) != 0 {
					t.Errorf("%s: the records %v are left", c.reason, objects.Records)
				}

				return
			}

			simulated.Reset()
			done(t, step, newOperation(stored(t, first.Data)))

			if len(simulated.Tenants())+len(objects.Records) != 0 {
				t.Errorf("%s: left over: %v, %v", c.reason, simulated.Tenants(), objects.Records)
			}
		})
	}
}

func TestEDPIsRemovedWithTheLastInstance(t *testing.T) {
	cases := map[string]struct {
		reason string
		other  environment.OutsideState
		want   int // data tenants
	}{
		"used":     {"another instance of the subaccount needs the registration", environment.OutsideCreated, 1},
		"creating": {"another instance is about to use it", environment.OutsideCreating, 1},
		"removing": {"of two removals at the same time, one has to remove it", environment.OutsideRemoving, 0},
		"left":     {"nobody uses what was left over", environment.OutsideLeftOver, 0},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated, client, objects := newEDP(t)
			objects.Records = append(objects.Records, registration("other", c.other))

			done(t, deregisterEDP{client: client, objects: objects}, newOperation(environment.Data{Instance: instance()}))

			if got := len(simulated.Tenants()); got != c.want || len(objects.Records) != 1 {
				t.Errorf("%s: %d data tenants, records %v", c.reason, got, objects.Records)
			}
		})
	}
}

func TestEDPWithoutACall(t *testing.T) {
	simulated, client, objects := newEDP(t)
	before := len(simulated.Calls())

	objects.Lost = true
	if _, _, err := run(t, deregisterEDP{client: client, objects: objects}, newOperation(environment.Data{})); !failure.Is(err, failure.Transient) {
		t.Errorf("without its lease, the step returns %v", err)
	}

	objects.Lost = false
	done(t, deregisterEDP{objects: objects}, newOperation(environment.Data{}))

	if got := objects.Of(environment.KindDataTenant).State; got != environment.OutsideLeftOver {
		t.Errorf("with EDP turned off, the record is %q", got)
	}

	objects.Records = nil
	done(t, deregisterEDP{client: client, objects: objects}, newOperation(environment.Data{}))

	if diff := cmp.Diff(before, len(simulated.Calls())); diff != "" {
		t.Errorf("EDP was called, -want +got: %s", diff)
	}
}
