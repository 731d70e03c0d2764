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
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
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
	config.AuthURL, config.AdminURL, config.Secret, config.Timeout = server.URL, server.URL, fakeedp.Secret, 2*time.Second
	client := edp.New(config, http.DefaultTransport)

	if err := client.Register(t.Context(), edp.Tenant{Name: "sub-1", PlatformRegion: "cf-eu10", PlanName: "aws"}); err != nil {
		t.Fatal(err)
	}

	return simulated, client, stepstest.New(registration(instanceID, environment.OutsideCreated))
}

// TestEDPFaults checks after which faults the removal is repeated, and the recorded state after the window.
//
//faults:table edp.md#deregistration
func TestEDPFaults(t *testing.T) {
	const (
		lasting  = -1
		interval = 10 * time.Second
		remove   = "deleteTenant"
	)

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantWait time.Duration
	}{
		"is unreachable, or its response is lost/unreachable": {"an outage can pass", simulator.Fault{Unsent: true, Times: lasting}, interval},
		"is slow": {"a call has a timeout", simulator.Fault{Delay: time.Minute, Times: lasting}, interval},
		"is unreachable, or its response is lost/lost":   {"a removal whose response was lost is repeated", simulator.Fault{Operation: remove, Lost: true}, interval},
		"returns no JSON/tenant":                         {"a proxy may have answered", simulator.Fault{Operation: remove, Body: "<html>"}, interval},
		"returns no JSON/metadata":                       {"a proxy may have answered", simulator.Fault{Operation: "deleteMetadata", Body: "<html>"}, interval},
		"returns no JSON/404":                            {"a proxy without a backend does not know the tenant", simulator.Fault{Operation: remove, Status: http.StatusNotFound, Body: "<html>"}, interval},
		"the token endpoint returns no token":            {"the token is no JSON", simulator.Fault{Operation: simulator.TokenOperation, Body: "<html>"}, interval},
		"the token endpoint returns 400, 401 or 403/401": {"an operator can correct the credentials", simulator.Fault{Operation: simulator.TokenOperation, Status: http.StatusUnauthorized}, interval},
		"the token endpoint returns 400, 401 or 403/400": {"an operator can correct the credentials", simulator.Fault{Operation: simulator.TokenOperation, Status: http.StatusBadRequest}, interval},
		"the token endpoint returns 400, 401 or 403/403": {"an operator can correct the credentials", simulator.Fault{Operation: simulator.TokenOperation, Status: http.StatusForbidden}, interval},
		"401 because a token has ended early":            {"a token that ended early is replaced", simulator.Fault{Operation: remove, Status: http.StatusUnauthorized}, 0},
		"401 or 403 with a new token/401":                {"the new token is rejected, too", simulator.Fault{Operation: remove, Status: http.StatusUnauthorized, Times: 2}, interval},
		"401 or 403 with a new token/403":                {"an operator can correct the rights", simulator.Fault{Status: http.StatusForbidden}, interval},
		"404":                                            {"an object that does not exist is removed", simulator.Fault{Status: http.StatusNotFound, Times: lasting}, 0},
		"429, 503 with Retry-After/429":                  {"the pause of the system counts", simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, 42 * time.Second},
		"429, 503 with Retry-After/503":                  {"at most five minutes", simulator.Fault{Operation: remove, Status: http.StatusServiceUnavailable, RetryAfter: 3600}, 5 * time.Minute},
		"408, 500 and above/408":                         {"a gateway may have lost the request", simulator.Fault{Operation: remove, Status: http.StatusRequestTimeout}, interval},
		"408, 500 and above/500":                         {"EDP may recover", simulator.Fault{Operation: remove, Status: http.StatusInternalServerError}, interval},
		"408, 500 and above/503":                         {"an overloaded system can recover", simulator.Fault{Status: http.StatusServiceUnavailable}, interval},
		"409, 400 and other statuses/409":                {"a registration that began before may have added metadata", simulator.Fault{Operation: remove, Status: http.StatusConflict}, interval},
		"409, 400 and other statuses/400":                {"a registration that began before may have added metadata", simulator.Fault{Status: http.StatusBadRequest}, interval},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulated, client, objects := newEDP(t)
			simulated.ExpireTokens()
			simulated.Inject(c.fault)

			step := deregisterEDP{client: client, objects: objects}

			first, wait, err := run(t, step, newOperation(environment.Data{Instance: instance()}))
			if err != nil || wait != c.wantWait {
				t.Fatalf("%s: runs again after %s, %v; want %s", c.reason, wait, err, c.wantWait)
			}

			faulttable.Shows(t, "edp.md#deregistration", name, stepstest.Shown(first, err))

			if wait == 0 {
				if len(objects.Records) != 0 {
					t.Errorf("%s: the records %v are left", c.reason, objects.Records)
				}

				return
			}

			c.fault.Times = lasting
			simulated.Inject(c.fault)

			if _, wait, err := runLate(t, step, stored(t, first.Data), 5*time.Minute); err != nil || wait != 0 ||
				objects.Of(environment.KindDataTenant).State != environment.OutsideLeftOver {
				t.Errorf("%s: after the window, the step returns %s, %v, with %v", c.reason, wait, err, objects.Lines())
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

// TestEDPWithoutACall checks when the step calls EDP at all.
//
//faults:row edp.md#deregistration is turned off
func TestEDPWithoutACall(t *testing.T) {
	simulated, client, objects := newEDP(t)
	before := len(simulated.Calls())

	objects.Lost = true
	if _, _, err := run(t, deregisterEDP{client: client, objects: objects}, newOperation(environment.Data{})); !failure.Is(err, failure.Transient) {
		t.Errorf("without its lease, the step returns %v", err)
	}

	objects.Lost = false
	off := done(t, deregisterEDP{objects: objects}, newOperation(environment.Data{}))
	faulttable.Shows(t, "edp.md#deregistration", "is turned off", stepstest.Shown(off, nil))

	if got := objects.Of(environment.KindDataTenant).State; got != environment.OutsideLeftOver {
		t.Errorf("with EDP turned off, the record is %q", got)
	}

	objects.Records = nil
	done(t, deregisterEDP{client: client, objects: objects}, newOperation(environment.Data{}))

	if diff := cmp.Diff(before, len(simulated.Calls())); diff != "" {
		t.Errorf("EDP was called, -want +got: %s", diff)
	}
}
