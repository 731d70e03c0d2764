package deprovisioning

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/ias"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeias"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// newIAS returns an IAS with the service providers of the instance and of another one, and a client.
func newIAS(t *testing.T) (*fakeias.IAS, *ias.Client) {
	t.Helper()

	return newIASWithin(t, 2*time.Second)
}

// newIASWithin is newIAS with the given timeout of one call.
func newIASWithin(t *testing.T, timeout time.Duration) (*fakeias.IAS, *ias.Client) {
	t.Helper()

	simulated := fakeias.New()
	simulated.Add("other")
	simulated.Add(instanceID)

	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := ias.DefaultConfig()
	config.URL, config.UserID, config.UserSecret, config.Timeout = server.URL, fakeias.User, fakeias.Secret, timeout

	return simulated, ias.New(config, http.DefaultTransport)
}

// TestIASFaults checks the message after each fault, whether the removal is repeated, and the recorded state after the window.
//
//faults:table ias.md#identity-authentication
func TestIASFaults(t *testing.T) {
	const (
		lasting  = -1
		interval = 5 * time.Second
	)

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantText string
		wantWait time.Duration
	}{
		"is unreachable, or its response is lost/unreachable": {"an outage can pass", simulator.Fault{Unsent: true, Times: lasting}, "IAS cannot be reached", interval},
		"is unreachable, or its response is lost/lost": {
			"a removal whose response was lost is repeated",
			simulator.Fault{Operation: "deleteServiceProvider", Lost: true},
			"IAS cannot be reached", interval,
		},
		"is slow": {"a call has a timeout", simulator.Fault{Delay: time.Minute, Times: lasting}, "IAS did not respond within 2s", interval},
		"returns no JSON/to the removal": {
			"a proxy may have answered",
			simulator.Fault{Operation: "deleteServiceProvider", Body: "<html>", Times: lasting},
			"IAS could not remove the service provider: it returned a response that is not the expected JSON", interval,
		},
		"returns no JSON/404 to the removal": {
			"a proxy without a backend does not know the service provider",
			simulator.Fault{Operation: "deleteServiceProvider", Status: http.StatusNotFound, Body: "<html>", Times: lasting},
			"IAS could not remove the service provider: it returned a response that is not the expected JSON", interval,
		},
		"returns no JSON/to the search": {
			"a proxy may answer with HTML",
			simulator.Fault{Operation: "getCompany", Body: "<html>", Times: lasting},
			"IAS could not list the service providers: it returned a response that is not the expected JSON", interval,
		},
		"401, 403/401": {
			"an operator can correct the credentials",
			simulator.Fault{Status: http.StatusUnauthorized, Times: lasting},
			"IAS rejects the credentials with HTTP status 401: an operator must correct APP_IAS_USER_ID and APP_IAS_USER_SECRET", interval,
		},
		"401, 403/403": {
			"an operator can correct the rights",
			simulator.Fault{Status: http.StatusForbidden, Times: lasting},
			"IAS rejects the credentials with HTTP status 403: an operator must correct APP_IAS_USER_ID and APP_IAS_USER_SECRET", interval,
		},
		"408, 500 and above/408": {
			"a gateway may have lost the request",
			simulator.Fault{Operation: "deleteServiceProvider", Status: http.StatusRequestTimeout, Times: lasting},
			"IAS could not remove the service provider: it returned HTTP status 408 Request Timeout", interval,
		},
		"409, 400 and other statuses/400": {
			"whatever its error, a removal is repeated",
			simulator.Fault{Operation: "getCompany", Status: http.StatusBadRequest, Times: lasting},
			"IAS could not list the service providers: it rejects the request with HTTP status 400 Bad Request", interval,
		},
		"429, 503 with Retry-After/429": {
			"the pause that the system asks for counts",
			simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42, Times: lasting},
			"IAS could not list the service providers: it returned HTTP status 429 Too Many Requests", 42 * time.Second,
		},
		"429, 503 with Retry-After/503": {
			"at most five minutes",
			simulator.Fault{Operation: "deleteServiceProvider", Status: http.StatusServiceUnavailable, RetryAfter: 3600, Times: lasting},
			"IAS could not remove the service provider: it returned HTTP status 503 Service Unavailable", 5 * time.Minute,
		},
		"408, 500 and above/500": {
			"IAS may recover",
			simulator.Fault{Operation: "getCompany", Status: http.StatusInternalServerError, Times: lasting},
			"IAS could not list the service providers: it returned HTTP status 500 Internal Server Error", interval,
		},
		"408, 500 and above/503": {
			"an overloaded system can recover",
			simulator.Fault{Operation: "deleteServiceProvider", Status: http.StatusServiceUnavailable, Times: lasting},
			"IAS could not remove the service provider: it returned HTTP status 503 Service Unavailable", interval,
		},
		"409, 400 and other statuses/409": {
			"another change may be in progress",
			simulator.Fault{Operation: "deleteServiceProvider", Status: http.StatusConflict, Times: lasting},
			"IAS could not remove the service provider: it rejects the request with HTTP status 409 Conflict", interval,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulated, client := newIAS(t)
			objects := stepstest.New()
			step := deregisterIAS{client: client, objects: objects}

			simulated.Inject(c.fault)

			err := client.Remove(t.Context(), instanceID)
			if err == nil || failure.Of(err).Text != c.wantText || strings.Contains(err.Error(), fakeias.Secret) {
				t.Errorf("%s: shows %v, want %q", c.reason, err, c.wantText)
			}

			simulated.Reset()

			simulated, client = newIAS(t)
			step.client = client
			simulated.Inject(c.fault)

			first, wait, err := run(t, step, newOperation(environment.Data{Instance: instance()}))
			if err != nil || wait != c.wantWait {
				t.Fatalf("%s: runs again after %s, %v", c.reason, wait, err)
			}

			faulttable.Shows(t, "ias.md#identity-authentication", name, stepstest.Shown(first, err))

			c.fault.Times = lasting
			simulated.Inject(c.fault)

			removed := len(simulated.Holds()) == 1 // although the response was lost

			if _, wait, err := runLate(t, step, stored(t, first.Data), 5*time.Minute); err != nil || wait != 0 ||
				(objects.Of(environment.KindServiceProvider).State == environment.OutsideLeftOver) == removed {
				t.Errorf("%s: after the window, the step returns %s, %v, with %v", c.reason, wait, err, objects.Lines())
			}

			simulated.Reset()
			done(t, step, newOperation(stored(t, first.Data)))
			done(t, step, newOperation(stored(t, first.Data)))

			want := []string{"service provider sp-1: SKR Grafana (instanceID: other)"}
			if diff := cmp.Diff(want, simulated.Holds()); diff != "" || len(objects.Records) != 0 {
				t.Errorf("%s: records %v, -want +got\n%s", c.reason, objects.Records, diff)
			}
		})
	}
}

// TestIASOfManyInstances removes a service provider that IAS lists after the service providers of many other instances.
func TestIASOfManyInstances(t *testing.T) {
	simulated, client := newIASWithin(t, time.Minute) // the response has 8 MiB, which takes seconds on a busy machine

	listed := strings.Repeat(`{"id": "sp-0", "display_name": "other", "certificate": "`+strings.Repeat("A", 4096)+`"}, `, 2000)
	simulated.Inject(simulator.Fault{Operation: "getCompany", Body: `{"name": "company", "service_providers": [` + listed +
		`{"id": "sp-2", "display_name": "SKR Grafana (instanceID: ` + instanceID + `)"}]}`})

	done(t, deregisterIAS{client: client, objects: stepstest.New()}, newOperation(environment.Data{Instance: instance()}))

	want := []string{"service provider sp-1: SKR Grafana (instanceID: other)"}
	if diff := cmp.Diff(want, simulated.Holds()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestIASDone checks which responses to the removal of a service provider end the step.
//
//faults:table ias.md#identity-authentication
func TestIASDone(t *testing.T) {
	cases := map[string]simulator.Fault{
		"404 of the service provider": {Operation: "deleteServiceProvider", Status: http.StatusNotFound},
	}

	for name, fault := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulated, client := newIAS(t)
			simulated.Inject(fault)

			objects := stepstest.New()
			after := done(t, deregisterIAS{client: client, objects: objects}, newOperation(environment.Data{Instance: instance()}))
			faulttable.Shows(t, "ias.md#identity-authentication", name, stepstest.Shown(after, nil))

			if diff := cmp.Diff([]string{"getCompany", "deleteServiceProvider"}, simulated.Operations()); diff != "" || len(objects.Records) != 0 {
				t.Errorf("records %v, calls -want +got\n%s", objects.Lines(), diff)
			}
		})
	}
}
