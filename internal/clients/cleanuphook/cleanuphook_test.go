package cleanuphook_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/cleanuphook"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecleanup"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

func TestHook(t *testing.T) {
	simulated := fakecleanup.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	hook := cleanuphook.New(fakecleanup.Config(server.URL), "garden-local", http.DefaultTransport)
	account := accountpool.Account{Name: "a", Type: "aws_eu-central-1", Tenant: "t1", EUAccess: true, Dirty: true, Version: "7"}

	type answer struct {
		State   accountpool.CleanupState
		Message string
		Kind    failure.Kind
	}

	ask := func(reason string, want answer) {
		t.Helper()

		state, message, err := hook.Clean(t.Context(), account)

		got := answer{State: state, Message: message}
		if err != nil {
			got.Kind = failure.KindOf(err)
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %v, -want +got\n%s", reason, err, diff)
		}
	}

	simulated.Inject(
		simulator.Fault{Status: 503},
		simulator.Fault{Body: `{"state": "unknown"}`},
		simulator.Fault{Body: `<html>`},
		simulator.Fault{Lost: true},
	)
	ask("unavailable", answer{Kind: failure.Transient})
	ask("an unknown state confirms nothing", answer{Kind: failure.Transient})
	ask("no JSON", answer{Kind: failure.Transient})
	ask("a lost response", answer{Kind: failure.Transient})

	want := cleanuphook.Question{
		Account: "a", Namespace: "garden-local", Type: "aws_eu-central-1", Provider: "aws", Tenant: "t1", EUAccess: true,
	}
	if diff := cmp.Diff(map[string]cleanuphook.Question{"a": want}, simulated.Questions()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	ask("a repeated question", answer{State: accountpool.CleanupClean, Message: "the account is empty"})
	ask("the first question", answer{State: accountpool.CleanupPending, Message: "the account is being emptied"})

	simulated.Inject(simulator.Fault{Body: `{"state": "failed", "message": "a bucket\nis locked\u0007` + strings.Repeat("x", 5000) + `"}`})

	if state, message, err := hook.Clean(t.Context(), account); state != accountpool.CleanupFailed || len(message) > 1100 || strings.ContainsAny(message, "\n\a") || err != nil {
		t.Errorf("got %s %q, %v", state, message, err)
	}
}

func TestConfig(t *testing.T) {
	cases := map[string]struct {
		change func(*cleanuphook.Config)
		want   string
	}{
		"Valid":       {func(*cleanuphook.Config) {}, ""},
		"Off":         {func(c *cleanuphook.Config) { *c = cleanuphook.Config{} }, ""},
		"Loopback":    {func(c *cleanuphook.Config) { c.URL = "http://127.0.0.1:1/cleanup" }, ""},
		"NoTLS":       {func(c *cleanuphook.Config) { c.URL = "http://hook.example.com" }, "APP_ACCOUNT_POOL_CLEANUP_URL: must be an https URL"},
		"NoURL":       {func(c *cleanuphook.Config) { c.URL = "hook" }, "APP_ACCOUNT_POOL_CLEANUP_URL: must be an https URL"},
		"Credentials": {func(c *cleanuphook.Config) { c.User = "u" }, "set both or neither"},
		"Timeout":     {func(c *cleanuphook.Config) { c.Timeout = time.Hour }, "at most 1m"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			settings := cleanuphook.DefaultConfig()
			settings.URL = "https://hook.example.com"
			c.change(&settings)

			err := settings.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
