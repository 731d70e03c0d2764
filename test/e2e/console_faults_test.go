package e2e

import (
	"net/http"
	"testing"
	"time"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/provisioner/director"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestFaultsOfConsoles reads the console of a runtime through the Provisioner, as the step Check_Runtime does, while Director or the
// Provisioner fails. TestConsoleBecomesTheDashboard in process/provisioning checks how the step handles transient and permanent
// errors.
//
//faults:table director.md#dashboard
func TestFaultsOfConsoles(t *testing.T) {
	const table, console = "director.md#dashboard", "https://console.example.com"

	simulated, settings := newDirector(t)
	settings.Timeout = time.Second

	e := start(t, harness.SQLite, time.Millisecond, func(_ *broker.Config, p *provisioner.Config) { p.Director = settings })
	e.Create("mine", harness.PlanAWS)
	e.WantSucceeded("mine")

	runtime := simulated.Runtimes()[0]
	simulated.SetLabel(runtime.ID, director.LabelConsole, console)

	client, err := provisionerclient.New(provisionerclient.Options{URL: e.services.Settings.Provisioner.URL})
	if err != nil {
		t.Fatal(err)
	}

	// Each fault lasts until the end of its sub-test.
	fault := func(fault fakedirector.Fault) func() {
		return func() {
			fault.Operation, fault.Times = "runtime", -1
			simulated.Inject(fault)
		}
	}
	ofTokens := func(status int) func() {
		return func() {
			simulated.RevokeTokens()
			simulated.Inject(fakedirector.Fault{Operation: fakedirector.TokenOperation, Status: status, Times: -1})
		}
	}

	for name, c := range map[string]struct {
		fail func()
		// retried reports whether the step repeats the call; found is the console that the call returns.
		retried bool
		found   string
	}{
		"is unreachable, or its response is lost/unreachable": {fail: fault(fakedirector.Fault{Unsent: true}), retried: true},
		"is unreachable, or its response is lost/lost":        {fail: fault(fakedirector.Fault{Lost: true}), retried: true},
		"is slow":         {fail: fault(fakedirector.Fault{Delay: time.Minute}), retried: true},
		"returns no JSON": {fail: fault(fakedirector.Fault{Body: "<html>"}), retried: true},
		"the token endpoint returns 400, 401 or 403/400":     {fail: ofTokens(http.StatusBadRequest), retried: true},
		"the token endpoint returns 400, 401 or 403/401":     {fail: ofTokens(http.StatusUnauthorized), retried: true},
		"the token endpoint returns 400, 401 or 403/403":     {fail: ofTokens(http.StatusForbidden), retried: true},
		"401 because a token has ended early":                {fail: simulated.RevokeTokens, found: console},
		"401 with a new token":                               {fail: fault(fakedirector.Fault{Status: http.StatusUnauthorized}), retried: true},
		"the code of InsufficientScopes":                     {fail: fault(fakedirector.Fault{Body: fakedirector.Rejection(fakedirector.InsufficientScopes)}), retried: true},
		"429, 503 with Retry-After/429":                      {fail: fault(fakedirector.Fault{Status: http.StatusTooManyRequests, RetryAfter: 60}), retried: true},
		"429, 503 with Retry-After/503":                      {fail: fault(fakedirector.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 60}), retried: true},
		"403, 408, 409, 500 and other statuses/403":          {fail: fault(fakedirector.Fault{Status: http.StatusForbidden}), retried: true},
		"403, 408, 409, 500 and other statuses/408":          {fail: fault(fakedirector.Fault{Status: http.StatusRequestTimeout}), retried: true},
		"403, 408, 409, 500 and other statuses/409":          {fail: fault(fakedirector.Fault{Status: http.StatusConflict}), retried: true},
		"403, 408, 409, 500 and other statuses/500":          {fail: fault(fakedirector.Fault{Status: http.StatusInternalServerError}), retried: true},
		"the code of InternalError":                          {fail: fault(fakedirector.Fault{Body: fakedirector.Rejection(fakedirector.InternalError)}), retried: true},
		"the code of InvalidData":                            {fail: fault(fakedirector.Fault{Body: fakedirector.Rejection(fakedirector.InvalidData)})},
		"the code of NotFound, or of TenantNotFound/runtime": {fail: fault(fakedirector.Fault{Body: fakedirector.Rejection(fakedirector.NotFound)})},
		"the code of NotFound, or of TenantNotFound/tenant":  {fail: fault(fakedirector.Fault{Body: fakedirector.Rejection(fakedirector.TenantNotFound)})},
		"the Provisioner is unreachable":                     {fail: nil, retried: true},
	} {
		t.Run(name, func(t *testing.T) {
			defer simulated.Reset()

			if c.fail != nil {
				c.fail()
			} else {
				defer e.services.Proxy.Inject(harness.Match{}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })()
			}

			found, err := client.Console(t.Context(), runtime.Tenant, runtime.ID)

			shown := ""
			if err != nil {
				shown = failure.Of(err).ForOperators()
			}

			faulttable.Shows(t, table, name, shown)

			if found != c.found || failure.Is(err, failure.Transient) != c.retried {
				t.Errorf("found %q, want %q; retried %t, want %t: %v", found, c.found, !c.retried, c.retried, err)
			}
		})

		// A success resets the circuit breakers.
		if found, err := client.Console(t.Context(), runtime.Tenant, runtime.ID); found != console || err != nil {
			t.Fatalf("after %s: %q, %v", name, found, err)
		}
	}
}
