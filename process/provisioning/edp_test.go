package provisioning

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

func newEDP(t *testing.T) (*fakeedp.EDP, *edp.Client) {
	t.Helper()

	simulated := fakeedp.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := edp.DefaultConfig()
	config.AuthURL, config.AdminURL, config.Secret, config.Timeout = server.URL, server.URL, fakeedp.Secret, time.Second

	return simulated, edp.New(config, http.DefaultTransport)
}

// registered are the data tenants after the registration of the instance.
func registered() map[string]map[string]string {
	return map[string]map[string]string{"sub-1/dev": {
		edp.KeyEnvironment: "CF", edp.KeyRegion: "cf-eu10", edp.KeySubAccount: "sub-1", edp.KeyServicePlan: "standard",
	}}
}

func edpOperation() Operation {
	operation := newOperation()
	operation.Data.Instance.PlatformRegion, operation.Data.Instance.PlanName = "cf-eu10", "aws"

	return operation
}

// TestEDPFaults has a case for each row of the table "Registration" in docs/operator/integrations/edp.md.
func TestEDPFaults(t *testing.T) {
	const lasting = -1

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantText string
		wantWait time.Duration
		// wantKind is the kind of the error if the registration is required and cannot be retried.
		wantKind failure.Kind
	}{
		"Away": {"an outage can pass", simulator.Fault{Unsent: true, Times: lasting}, "EDP cannot be reached", edpInterval, ""},
		"Lost": {
			"a registration whose response was lost is completed",
			simulator.Fault{Operation: "createTenant", Lost: true},
			"EDP cannot be reached", edpInterval, "",
		},
		"Slow": {"a call has a timeout", simulator.Fault{Delay: time.Minute, Times: lasting}, "EDP did not respond within 1s", edpInterval, ""},
		"Garbled": {
			"the token is no JSON",
			simulator.Fault{Operation: simulator.TokenOperation, Body: "<html>", Times: lasting},
			"the token endpoint of EDP returned no token", edpInterval, "",
		},
		"401": {
			"an operator can correct the credentials",
			simulator.Fault{Status: http.StatusUnauthorized, Times: lasting},
			"the token endpoint of EDP rejects our credentials: an operator must correct APP_EDP_AUTH_URL, APP_EDP_NAMESPACE and APP_EDP_SECRET", edpInterval, "",
		},
		"403": {
			"an operator can correct the rights",
			simulator.Fault{Operation: "createTenant", Status: http.StatusForbidden, Times: lasting},
			"EDP rejects our credentials with HTTP status 403: an operator must correct APP_EDP_AUTH_URL, APP_EDP_NAMESPACE and APP_EDP_SECRET", edpInterval, "",
		},
		"408": {
			"a gateway may have lost the request",
			simulator.Fault{Operation: "createTenant", Status: http.StatusRequestTimeout, Times: lasting},
			"EDP could not register the subaccount: it returned HTTP status 408 Request Timeout", edpInterval, "",
		},
		"429": {
			"the pause that the system asks for counts",
			simulator.Fault{Operation: "createTenant", Status: http.StatusTooManyRequests, RetryAfter: 42, Times: lasting},
			"EDP could not register the subaccount: it returned HTTP status 429 Too Many Requests", 42 * time.Second, "",
		},
		"503": {
			"an overloaded system can recover",
			simulator.Fault{Operation: "createMetadata", Status: http.StatusServiceUnavailable, Times: lasting},
			"EDP could not register the subaccount: it returned HTTP status 503 Service Unavailable", edpInterval, "",
		},
		"400": {
			"another attempt would be rejected as well",
			simulator.Fault{Operation: "createTenant", Status: http.StatusBadRequest, Times: lasting},
			"EDP could not register the subaccount: it rejects the request with HTTP status 400 Bad Request", 0, failure.Permanent,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated, client := newEDP(t)
			objects := stepstest.New()
			step := registerEDP{client: client, objects: objects, required: true}

			simulated.Inject(c.fault)

			if err := client.Register(t.Context(), edp.Tenant{Name: "sub-1"}); err == nil || failure.Of(err).Text != c.wantText {
				t.Errorf("%s: shows %v, want %q", c.reason, err, c.wantText)
			} else if text := err.Error(); strings.Contains(text, fakeedp.Secret) || strings.Contains(text, "token-1") {
				t.Errorf("the error contains a secret: %s", text)
			}

			simulated, client = newEDP(t)
			step.client = client
			simulated.Inject(c.fault)

			_, wait, err := step.Run(t.Context(), edpOperation(), logging.Discard())
			if wait != c.wantWait || failure.Is(err, failure.Permanent) != (c.wantKind != "") {
				t.Fatalf("%s: runs again after %s, %v", c.reason, wait, err)
			}

			if objects.Of(environment.KindDataTenant).State != environment.OutsideCreating {
				t.Errorf("%s: the object is recorded as %q", c.reason, objects.Of(environment.KindDataTenant).State)
			}

			if c.wantKind != "" { // without the registration, the operation continues if it is not required
				step.required = false
				runStage(t, edpOperation(), step)

				return
			}

			simulated.Reset()
			runStage(t, edpOperation(), step, step)

			if diff := cmp.Diff(registered(), simulated.Tenants()); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

func TestEDPTokenExpires(t *testing.T) {
	simulated, client := newEDP(t)

	for range 2 {
		if err := client.Register(t.Context(), edp.Tenant{Name: "sub-1", PlatformRegion: "cf-eu10"}); err != nil {
			t.Errorf("a token that ended early is replaced: %v", err)
		}

		simulated.ExpireTokens()
	}

	if diff := cmp.Diff(registered(), simulated.Tenants()); diff != "" {
		t.Errorf("the repeated registration gets 409 and adds nothing: -want +got\n%s", diff)
	}
}

func TestEDPWaitsForARemoval(t *testing.T) {
	simulated, client := newEDP(t)
	objects := stepstest.New(environment.OutsideObject{
		InstanceID: "other", System: environment.SystemEDP, Kind: environment.KindDataTenant, Key: "sub-1", State: environment.OutsideRemoving,
	})
	step := registerEDP{client: client, objects: objects}

	if _, wait, err := step.Run(t.Context(), edpOperation(), logging.Discard()); err != nil || wait != edpInterval {
		t.Errorf("during a removal by another instance: %s, %v", wait, err)
	}

	objects.Records, objects.Lost = nil, true
	if _, _, err := step.Run(t.Context(), edpOperation(), logging.Discard()); !failure.Is(err, failure.Transient) {
		t.Errorf("without its lease, the step returns %v", err)
	}

	if calls := simulated.Calls(); len(calls) != 0 {
		t.Errorf("EDP was called: %v", calls)
	}
}
