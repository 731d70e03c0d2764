package director_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/provisioner/director"
)

// tokens counts the issued access tokens.
func (f fixture) tokens() int {
	count := 0

	for _, call := range f.director.Calls() {
		if call.Operation == simulator.TokenOperation {
			count++
		}
	}

	return count
}

func TestTokenIsSharedAndRenewed(t *testing.T) {
	f := newFixture(t, simulator.Options{})

	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if err := f.client.Probe(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}

	calls.Wait()

	if got := f.tokens(); got != 1 {
		t.Errorf("20 concurrent calls requested %d tokens, want 1", got)
	}

	f.director.RevokeTokens()

	if err := f.client.Probe(t.Context()); err != nil {
		t.Errorf("a token that Director rejects is not replaced: %v", err)
	}

	f.director.Inject(simulator.Fault{Operation: "__typename", Status: http.StatusUnauthorized})

	if err := f.client.Probe(t.Context()); err != nil {
		t.Errorf("a token that a gateway rejects is not replaced: %v", err)
	}

	if got := f.tokens(); got != 3 {
		t.Errorf("%d tokens, want 3", got)
	}

	if err := f.client.ProbeToken(t.Context()); err != nil || f.tokens() != 4 {
		t.Errorf("a probe of the token endpoint gets no new token: %v, %d", err, f.tokens())
	}
}

func TestTokenIsRenewedBeforeExpiry(t *testing.T) {
	for lifetime, want := range map[time.Duration]int{time.Hour: 1, 29 * time.Second: 1, time.Second: 3} {
		f := newFixture(t, simulator.Options{TokenLifetime: lifetime})

		for range 3 {
			if err := f.client.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}

			if lifetime == time.Second {
				f.director.RevokeTokens() // Revoking the token simulates its expiry.
			}
		}

		if got := f.tokens(); got != want {
			t.Errorf("tokens of %s: %d were requested, want %d", lifetime, got, want)
		}
	}
}

func TestTokenIsNotUsedInItsLastMoments(t *testing.T) {
	cases := map[string]struct {
		reason         string
		lifetime, used time.Duration
		want           int
	}{
		"fresh":           {"the token is valid for a long time", time.Hour, 59 * time.Minute, 1},
		"expiring":        {"the token might expire on the way to Director", time.Hour, time.Hour - 20*time.Second, 2},
		"short":           {"a token shorter than the safety margin is still used", 20 * time.Second, 10 * time.Second, 1},
		"short, expiring": {"the token might expire on the way to Director", 20 * time.Second, 19 * time.Second, 2},
		"expired":         {"the token has expired", time.Hour, 2 * time.Hour, 2},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newInProcess(t, simulator.Options{TokenLifetime: c.lifetime})

				for _, later := range []time.Duration{0, c.used} {
					time.Sleep(later)

					if err := f.client.Probe(t.Context()); err != nil {
						t.Fatal(err)
					}
				}

				if got := f.tokens(); got != c.want {
					t.Errorf("%s: after %s of %s %d tokens were requested, want %d", c.reason, c.used, c.lifetime, got, c.want)
				}
			})
		})
	}
}

func TestErrorsOfTheTokenEndpoint(t *testing.T) {
	cases := map[string]struct {
		reason     string
		fault      simulator.Fault
		secret     string
		wantReason string
		text       string
	}{
		"refused":     {"an operator corrects the credentials", simulator.Fault{}, "wrong-secret", "Unauthorized", "APP_OAUTH_CREDENTIALS_SECRET_NAME"},
		"unavailable": {"the outage is temporary", simulator.Fault{Unsent: true}, "", failure.ReasonInternal, "cannot be reached"},
		"failing":     {"the outage is temporary", simulator.Fault{Status: 503}, "", failure.ReasonHTTPStatus, "503"},
		"no token":    {"the response contains no token", simulator.Fault{Body: `{"expires_in": 7}`}, "", failure.ReasonInternal, "returns no token"},
		"no JSON":     {"the response contains no token", simulator.Fault{Body: `<html>`}, "", failure.ReasonInternal, "returns no token"},
		"too long":    {"the size of responses is limited", simulator.Fault{Body: strings.Repeat("x", 2<<20)}, "", failure.ReasonInternal, "returns no token"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{}, func(o *director.Options) {
				if c.secret != "" {
					wrong, _ := o.Credentials.(fixed)
					wrong.ClientSecret = "wrong-secret"
					o.Credentials = wrong
				}
			})
			c.fault.Operation = simulator.TokenOperation
			f.director.Inject(c.fault)

			_, err := f.client.Find(t.Context(), tenant, label, "v")

			got := failure.Of(err)
			if got.Kind != failure.Transient || got.Reason != c.wantReason || got.Component != failure.ComponentDirectorToken {
				t.Errorf("%s: got %s, %s of %q", c.reason, got.Kind, got.Reason, got.Component)
			}

			if !strings.Contains(got.Text, c.text) || strings.Contains(err.Error(), "wrong-secret") || strings.Contains(got.Text, "127.0.0.1") {
				t.Errorf("%s: got text %q", c.reason, err)
			}
		})
	}
}

// TestTimeouts delays the responses of Director and of its token endpoint. The call must end after exactly the client's timeout
// with a transient error that names the slow component.
func TestTimeouts(t *testing.T) {
	for operation, component := range map[string]string{
		"runtimes": failure.ComponentDirectorClient, simulator.TokenOperation: failure.ComponentDirectorToken,
	} {
		t.Run(operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newInProcess(t, simulator.Options{})
				f.director.Inject(simulator.Fault{Operation: operation, Delay: time.Hour})

				began := time.Now()
				_, err := f.client.Find(t.Context(), tenant, label, "v")

				if took := time.Since(began); took != timeout {
					t.Errorf("the call takes %s, want %s", took, timeout)
				}

				got := failure.Of(err)
				if got.Kind != failure.Transient || got.Reason != failure.ReasonTimeout || got.Component != component || !strings.Contains(got.Text, "in time") {
					t.Errorf("got %s, %s of %q: %s", got.Kind, got.Reason, got.Component, got.Text)
				}
			})
		})
	}
}

func TestCircuitBreakersDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // Fake time stands still, so the circuit breaker stays open.
		system := upstream.New(upstream.Options{Name: "director", Title: "Director", Component: failure.ComponentDirectorClient, Calls: 4, Variable: "V"})
		f := newInProcess(t, simulator.Options{}, func(o *director.Options) { o.WrapTransport = system.Transport })
		f.director.Inject(simulator.Fault{Operation: "runtimes", Status: http.StatusBadGateway, Times: -1})

		var err error
		for range 6 {
			_, err = f.client.Find(t.Context(), tenant, label, "v")
		}

		if got := failure.Of(err); got.Reason != failure.ReasonSystemUnavailable || system.Status().State != upstream.Open || !strings.Contains(got.Text, "502") {
			t.Errorf("after six failures: %s, the circuit breaker is %s", err, system.Status().State)
		}

		if _, known := errors.AsType[*failure.Error](err); !known {
			t.Error("a rejected call lacks its reason")
		}
	})
}
