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
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// newIAS returns an IAS with the service providers of the instance and of another one, and a client.
func newIAS(t *testing.T) (*fakeias.IAS, *ias.Client) {
	t.Helper()

	simulated := fakeias.New()
	simulated.Add("other")
	simulated.Add(instanceID)

	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := ias.DefaultConfig()
	config.URL, config.UserID, config.UserSecret, config.Timeout = server.URL, fakeias.User, fakeias.Secret, time.Second

	return simulated, ias.New(config, http.DefaultTransport)
}

// TestIASFaults has a case for each row of the table in docs/operator/integrations/ias.md.
func TestIASFaults(t *testing.T) {
	const lasting = -1

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantText string
		wantWait time.Duration
	}{
		"Away": {"an outage can pass", simulator.Fault{Unsent: true, Times: lasting}, "IAS cannot be reached", iasInterval},
		"Lost": {
			"a removal whose response was lost is repeated",
			simulator.Fault{Operation: "deleteServiceProvider", Lost: true},
			"IAS cannot be reached", iasInterval,
		},
		"Slow": {"a call has a timeout", simulator.Fault{Delay: time.Minute, Times: lasting}, "IAS did not respond within 1s", iasInterval},
		"Garbled": {
			"a proxy may answer with HTML",
			simulator.Fault{Operation: "getCompany", Body: "<html>", Times: lasting},
			"IAS could not list the service providers: it returned a response that is not the expected JSON", iasInterval,
		},
		"401": {
			"an operator can correct the credentials",
			simulator.Fault{Status: http.StatusUnauthorized, Times: lasting},
			"IAS rejects our credentials with HTTP status 401: an operator must correct APP_IAS_USER_ID and APP_IAS_USER_SECRET", iasInterval,
		},
		"403": {
			"an operator can correct the rights",
			simulator.Fault{Status: http.StatusForbidden, Times: lasting},
			"IAS rejects our credentials with HTTP status 403: an operator must correct APP_IAS_USER_ID and APP_IAS_USER_SECRET", iasInterval,
		},
		"408": {
			"a gateway may have lost the request",
			simulator.Fault{Operation: "deleteServiceProvider", Status: http.StatusRequestTimeout, Times: lasting},
			"IAS could not remove the service provider: it returned HTTP status 408 Request Timeout", iasInterval,
		},
		"400": {
			"whatever its error, a removal is repeated",
			simulator.Fault{Operation: "getCompany", Status: http.StatusBadRequest, Times: lasting},
			"IAS could not list the service providers: it rejects the request with HTTP status 400 Bad Request", iasInterval,
		},
		"429": {
			"the pause that the system asks for counts",
			simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42, Times: lasting},
			"IAS could not list the service providers: it returned HTTP status 429 Too Many Requests", 42 * time.Second,
		},
		"503": {
			"an overloaded system can recover",
			simulator.Fault{Operation: "deleteServiceProvider", Status: http.StatusServiceUnavailable, Times: lasting},
			"IAS could not remove the service provider: it returned HTTP status 503 Service Unavailable", iasInterval,
		},
		"409": {
			"another change may be in progress",
			simulator.Fault{Operation: "deleteServiceProvider", Status: http.StatusConflict, Times: lasting},
			"IAS could not remove the service provider: it rejects the request with HTTP status 409 Conflict", iasInterval,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
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

			simulated.Reset()
			done(t, step, newOperation(stored(t, first.Data)))
			done(t, step, newOperation(stored(t, first.Data)))

			want := []string{"service provider sp-1: SKR Grafana (instanceID: other)"}
			if diff := cmp.Diff(want, simulated.Holds()); diff != "" || len(objects.Records) != 0 {
				t.Errorf("%s: records %v, -want +got\n%s", c.reason, objects.Records, diff)
			}
		})
	}

	simulated, client := newIAS(t)
	simulated.Inject(simulator.Fault{Operation: "deleteServiceProvider", Status: http.StatusNotFound})

	if err := client.Remove(t.Context(), instanceID); err != nil {
		t.Errorf("a service provider that is gone is removed: %v", err)
	}
}
