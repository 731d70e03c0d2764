package webhook_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/environment-broker/environment-broker/internal/clients/webhook"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
)

const timeout = 5 * time.Second

func loopback(t *testing.T) networks.Networks {
	t.Helper()

	allowed, err := networks.Parse([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}

	return allowed
}

func message(address string, secrets ...secret.String) webhook.Message {
	return webhook.Message{URL: secret.String(address), Secrets: secrets, ID: "msg", At: time.Now(), Body: []byte(`{"a":1}`)}
}

// TestSignatures verifies messages with the Standard Webhooks library.
func TestSignatures(t *testing.T) {
	current, previous, other := webhook.NewSecret(), webhook.NewSecret(), webhook.NewSecret()

	var (
		header http.Header
		body   []byte
	)

	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
	}))
	t.Cleanup(server.Close)

	client := webhook.New(loopback(t), timeout)

	for name, c := range map[string]struct {
		secrets  []secret.String
		accepted map[secret.String]bool
	}{
		"one secret": {[]secret.String{current}, map[secret.String]bool{current: true, previous: false}},
		"a rotation": {[]secret.String{current, previous}, map[secret.String]bool{current: true, previous: true, other: false}},
	} {
		if err := client.Send(t.Context(), message(server.URL, c.secrets...)); err != nil {
			t.Fatal(err)
		}

		for key, want := range c.accepted {
			verifier, err := standardwebhooks.NewWebhook(key.Reveal())
			if err != nil {
				t.Fatal(err)
			}

			if err := verifier.Verify(body, header); (err == nil) != want {
				t.Errorf("%s: got %v, want accepted %t", name, err, want)
			}

			if err := verifier.Verify([]byte(`{"a":2}`), header); err == nil {
				t.Errorf("%s: another body is accepted", name)
			}
		}
	}

	if err := client.Send(t.Context(), message(server.URL, "whsec_not base64")); err == nil || strings.Contains(err.Error(), "not base64") {
		t.Errorf("an invalid secret: got %v", err)
	}
}

// TestVector compares a signature with the test vector of the Standard Webhooks libraries.
func TestVector(t *testing.T) {
	const (
		key  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		id   = "msg_p5jXN8AQM9LWM0D4loKWxJek"
		want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	)

	var got string

	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("webhook-signature") }))
	t.Cleanup(server.Close)

	if err := webhook.New(loopback(t), timeout).Send(t.Context(), webhook.Message{
		URL: secret.String(server.URL), Secrets: []secret.String{key}, ID: id, At: time.Unix(1614265330, 0), Body: []byte(`{"test": 2432232314}`),
	}); err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFailures(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()

	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)

	response := func(status int, header ...string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}

			w.WriteHeader(status)
		}))
		t.Cleanup(server.Close)

		return server.URL
	}

	for name, c := range map[string]struct {
		reason string
		url    string
		status int
		after  time.Duration
		text   string
	}{
		"error":     {"the status counts", response(500), 500, 0, "HTTP status 500 Internal Server Error"},
		"gone":      {"the caller disables the webhook", response(410), 410, 0, "HTTP status 410 Gone"},
		"redirect":  {"redirects are not followed", response(307, "Location", "http://other.example.com"), 307, 0, "HTTP status 307"},
		"seconds":   {"a pause in seconds", response(429, "Retry-After", "90"), 429, 90 * time.Second, "HTTP status 429"},
		"long":      {"pauses are limited", response(503, "Retry-After", "2000000000"), 503, 24 * time.Hour, "HTTP status 503"},
		"past":      {"a date in the past", response(503, "Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"), 503, 0, "HTTP status 503"},
		"invalid":   {"an invalid pause", response(503, "Retry-After", "-1"), 503, 0, "HTTP status 503"},
		"closed":    {"no server", closed.URL, 0, 0, "the connection to the receiver failed"},
		"untrusted": {"an unknown certificate authority", untrusted.URL, 0, 0, "the TLS connection to the receiver failed"},
		"no name":   {"names that do not exist", "http://name.invalid", 0, 0, "cannot be resolved"},
	} {
		t.Run(name, func(t *testing.T) {
			err := webhook.New(loopback(t), timeout).Send(t.Context(), message(c.url+"/path?token=t0ken", webhook.NewSecret()))

			failed, is := errors.AsType[*webhook.Error](err)
			if !is || failed.Status != c.status || failed.RetryAfter != c.after || !strings.Contains(failed.Error(), c.text) {
				t.Errorf("%s: got %+v", c.reason, err)
			}

			if strings.Contains(err.Error(), "t0ken") {
				t.Errorf("the error contains the URL: %v", err)
			}
		})
	}
}

// TestTimeout sends to a receiver that does not respond.
func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })

	err := webhook.New(loopback(t), 50*time.Millisecond).Send(t.Context(), message(server.URL, webhook.NewSecret()))
	if err == nil || err.Error() != "the receiver did not respond within 50ms" {
		t.Errorf("got %v", err)
	}
}

// TestAddresses checks that no message is sent to an address that is not permitted, by number or by name.
func TestAddresses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("received") }))
	t.Cleanup(server.Close)

	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	for _, address := range []string{server.URL, "http://localhost:" + port, "https://127.0.0.1:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://8.8.8.8"} {
		want := networks.ErrRefused.Error()
		if strings.HasPrefix(address, "http://") {
			want = "an http URL must have an address in one of the networks in APP_WEBHOOK_NETWORKS"
		}

		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()

		if err := webhook.New(networks.Networks{}, timeout).Send(ctx, message(address, webhook.NewSecret())); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", address, err, want)
		}
	}
}

func TestCheckURL(t *testing.T) {
	client, public := webhook.New(loopback(t), timeout), webhook.New(networks.Networks{}, timeout)

	for address, valid := range map[string]bool{
		"https://example.com/a?b=c": true, "http://127.0.0.1:8080": true, "https://127.0.0.1:8080": true, "http://localhost": true, "https://8.8.8.8": true,
		"http://10.0.0.1:8080": false, "https://10.0.0.1": false, "https://[::1]": false, "http://8.8.8.8": false, "https://user:pw@example.com": false, "https://example.com/#a": false,
		"ftp://example.com": false, "https://": false, "https:a": false, "/a": false, "": false, "https://:443": false, "https://a\x00": false,
		"https://example.com/" + strings.Repeat("a", 3000): false,
	} {
		if err := client.CheckURL(address); (err == nil) != valid {
			t.Errorf("%.30q: got %v", address, err)
		}
	}

	for address, valid := range map[string]bool{"https://example.com": true, "http://example.com": false, "https://127.0.0.1": false, "https://[::ffff:10.0.0.1]": false} {
		if err := public.CheckURL(address); (err == nil) != valid {
			t.Errorf("public addresses only: %q: got %v", address, err)
		}
	}
}
