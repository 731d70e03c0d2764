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
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

func newEDP(t *testing.T) (*fakeedp.EDP, *edp.Client) {
	t.Helper()

	simulated := fakeedp.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := edp.DefaultConfig()
	config.AuthURL, config.AdminURL, config.Secret, config.Timeout = server.URL, server.URL, fakeedp.Secret, 2*time.Second

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

// TestEDPFaults checks the message after each fault, whether the registration is repeated, and how the operation continues after the window.
//
//faults:table edp.md#registration
func TestEDPFaults(t *testing.T) {
	const (
		lasting     = -1
		interval    = 10 * time.Second
		window      = 30 * time.Minute
		create      = "createTenant"
		add         = "createMetadata"
		credentials = ": an operator must correct APP_EDP_AUTH_URL, APP_EDP_NAMESPACE and APP_EDP_SECRET"
		could       = "EDP could not register the subaccount: it "
	)

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantText string
		wantWait time.Duration // zero: the limit counts as reached
	}{
		"is unreachable, or its response is lost/unreachable": {"an outage can pass", simulator.Fault{Unsent: true}, "EDP cannot be reached", interval},
		"is unreachable, or its response is lost/lost":        {"a registration whose response was lost is completed", simulator.Fault{Operation: add, Lost: true}, "EDP cannot be reached", interval},
		"is slow": {"a call has a timeout", simulator.Fault{Delay: time.Minute}, "EDP did not respond within 2s", interval},
		"returns no JSON/tenant": {
			"a proxy may have answered", simulator.Fault{Operation: create, Body: "<html>"}, could + "returned a response that is not the expected JSON", interval,
		},
		"returns no JSON/metadata": {
			"a proxy may have answered", simulator.Fault{Operation: add, Body: "<html>"}, could + "returned a response that is not the expected JSON", interval,
		},
		"the token endpoint returns no token": {
			"the token is no JSON", simulator.Fault{Operation: simulator.TokenOperation, Body: "<html>"}, "the token endpoint of EDP returned no token", interval,
		},
		"the token endpoint returns 400, 401 or 403/400": {
			"an operator can correct the credentials",
			simulator.Fault{Operation: simulator.TokenOperation, Status: http.StatusBadRequest},
			"the token endpoint of EDP rejects the credentials" + credentials, interval,
		},
		"the token endpoint returns 400, 401 or 403/401": {
			"an operator can correct the credentials",
			simulator.Fault{Operation: simulator.TokenOperation, Status: http.StatusUnauthorized},
			"the token endpoint of EDP rejects the credentials" + credentials, interval,
		},
		"the token endpoint returns 400, 401 or 403/403": {
			"an operator can correct the credentials",
			simulator.Fault{Operation: simulator.TokenOperation, Status: http.StatusForbidden},
			"the token endpoint of EDP rejects the credentials" + credentials, interval,
		},
		"401 or 403 with a new token/401": {
			"an operator can correct the credentials",
			simulator.Fault{Operation: create, Status: http.StatusUnauthorized},
			"EDP rejects the credentials with HTTP status 401" + credentials, interval,
		},
		"401 or 403 with a new token/403": {
			"an operator can correct the rights",
			simulator.Fault{Operation: create, Status: http.StatusForbidden},
			"EDP rejects the credentials with HTTP status 403" + credentials, interval,
		},
		"404: another instance has just removed the registration": {
			"the next attempt creates it again", simulator.Fault{Operation: add, Status: http.StatusNotFound}, could + "rejects the request with HTTP status 404 Not Found", interval,
		},
		"429, 503 with Retry-After/429": {
			"the pause that the system asks for counts",
			simulator.Fault{Operation: create, Status: http.StatusTooManyRequests, RetryAfter: 42},
			could + "returned HTTP status 429 Too Many Requests", 42 * time.Second,
		},
		"429, 503 with Retry-After/503": {
			"at most five minutes",
			simulator.Fault{Operation: add, Status: http.StatusServiceUnavailable, RetryAfter: 3600},
			could + "returned HTTP status 503 Service Unavailable", 5 * time.Minute,
		},
		"408, 500 and above/408": {
			"a gateway may have lost the request", simulator.Fault{Operation: create, Status: http.StatusRequestTimeout}, could + "returned HTTP status 408 Request Timeout", interval,
		},
		"408, 500 and above/500": {
			"EDP may recover", simulator.Fault{Operation: create, Status: http.StatusInternalServerError}, could + "returned HTTP status 500 Internal Server Error", interval,
		},
		"408, 500 and above/503": {
			"an overloaded system can recover", simulator.Fault{Operation: add, Status: http.StatusServiceUnavailable}, could + "returned HTTP status 503 Service Unavailable", interval,
		},
		"400 and other statuses/400": {
			"another attempt would be rejected as well", simulator.Fault{Operation: create, Status: http.StatusBadRequest}, could + "rejects the request with HTTP status 400 Bad Request", 0,
		},
		"400 and other statuses/422": {
			"another attempt would be rejected as well",
			simulator.Fault{Operation: add, Status: http.StatusUnprocessableEntity},
			could + "rejects the request with HTTP status 422 Unprocessable Entity", 0,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c.fault.Times = lasting
			simulated, client := newEDP(t)
			simulated.Inject(c.fault)

			if err := client.Register(t.Context(), edp.Tenant{Name: "sub-1"}); err == nil || failure.Of(err).Text != c.wantText {
				t.Errorf("%s: shows %v, want %q", c.reason, err, c.wantText)
			} else if text := err.Error(); strings.Contains(text, fakeedp.Secret) || strings.Contains(text, "token-1") {
				t.Errorf("the error contains a secret: %s", text)
			}

			simulated, client = newEDP(t)
			simulated.Inject(c.fault)

			objects := stepstest.New()
			required, optional := registerEDP{client: client, objects: objects, required: true}, registerEDP{client: client, objects: objects}
			late := process.NewFailingOperation(edpOperation().Record, edpOperation().Data, began, began.Add(window))

			for _, step := range []registerEDP{required, optional} {
				after, wait, err := step.Run(t.Context(), edpOperation(), logging.Discard())
				if wait != c.wantWait || failure.Is(err, failure.Permanent) != (c.wantWait == 0 && step.required) {
					t.Fatalf("%s: required %t, runs again after %s, %v", c.reason, step.required, wait, err)
				}

				faulttable.Shows(t, "edp.md#registration", name, stepstest.Shown(after, err))

				if _, wait, err := step.Run(t.Context(), late, logging.Discard()); wait != 0 || failure.Is(err, failure.Permanent) != step.required {
					t.Errorf("%s: required %t, after the window: runs again after %s, %v", c.reason, step.required, wait, err)
				}

				if state := objects.Of(environment.KindDataTenant).State; state != environment.OutsideCreating {
					t.Errorf("%s: the object is recorded as %q", c.reason, state)
				}
			}

			simulated.Reset()
			runStage(t, edpOperation(), required, required)

			if diff := cmp.Diff(registered(), simulated.Tenants()); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// TestEDPTokenExpires ends the token of the client between two registrations.
//
//faults:row edp.md#registration 401 because a token has ended early
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

// TestEDPConflict completes a registration that exists in part, after finding out which part exists.
//
//faults:row edp.md#registration 409
//faults:row edp.md#registration returns no JSON
func TestEDPConflict(t *testing.T) {
	simulated, client := newEDP(t)
	// The third entry is not added.
	simulated.Inject(
		simulator.Fault{Operation: "createMetadata", Delay: time.Nanosecond, Times: 2},
		simulator.Fault{Operation: "createMetadata", Status: http.StatusServiceUnavailable},
	)

	step := registerEDP{client: client, objects: stepstest.New(), required: true}

	for _, fault := range []simulator.Fault{{Operation: "none"}, {Operation: "getMetadata", Body: "<html>", Times: 2}} {
		simulated.Inject(fault)

		if _, wait, err := step.Run(t.Context(), edpOperation(), logging.Discard()); err != nil || wait != 10*time.Second {
			t.Fatalf("runs again after %s, %v", wait, err)
		}
	}

	const text = "EDP could not register the subaccount: it returned a response that is not the expected JSON"
	if err := client.Register(t.Context(), edp.Tenant{Name: "sub-1"}); err == nil || failure.Of(err).Text != text {
		t.Errorf("shows %v", err)
	}

	before := len(simulated.Operations())
	runStage(t, edpOperation(), step)

	if diff := cmp.Diff([]string{"createTenant", "getMetadata", "createMetadata", "createMetadata"}, simulated.Operations()[before:]); diff != "" {
		t.Errorf("calls: -want +got\n%s", diff)
	}

	if diff := cmp.Diff(registered(), simulated.Tenants()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestEDPWaitsForARemoval(t *testing.T) {
	simulated, client := newEDP(t)
	removing := environment.OutsideObject{
		InstanceID: "other", System: environment.SystemEDP, Kind: environment.KindDataTenant, Key: "sub-1", State: environment.OutsideRemoving,
	}
	objects := stepstest.New(removing)
	step := registerEDP{client: client, objects: objects}

	for _, subaccount := range []string{"sub-1", "SUB-1"} { // both have the data tenant sub-1
		operation := edpOperation()
		operation.Data.Instance.SubAccountID = subaccount

		if _, wait, err := step.Run(t.Context(), operation, logging.Discard()); err != nil || wait != edpInterval {
			t.Errorf("%s: during a removal by another instance: %s, %v", subaccount, wait, err)
		}
	}

	objects.Records, objects.Lost = nil, true
	if _, _, err := step.Run(t.Context(), edpOperation(), logging.Discard()); !failure.Is(err, failure.Transient) {
		t.Errorf("without its lease, the step returns %v", err)
	}

	if calls := simulated.Calls(); len(calls) != 0 {
		t.Errorf("EDP was called: %v", calls)
	}

	objects.Records, objects.Lost = []environment.OutsideObject{removing}, false // an operator has skipped the removal, so its record stays

	late := process.NewFailingOperation(edpOperation().Record, edpOperation().Data, began, began.Add(removalWindow))
	if _, wait, err := step.Run(t.Context(), late, logging.Discard()); err != nil || wait != 0 || len(simulated.Tenants()) != 1 {
		t.Errorf("after the longest removal: %s, %v, registered %v", wait, err, simulated.Tenants())
	}
}
