package content_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/bundle/content"
)

// server is a content server that responds to every request with the current status.
type server struct {
	*httptest.Server

	status atomic.Int32
	later  atomic.Bool
	calls  atomic.Int32
}

func newServer(t *testing.T) *server {
	t.Helper()

	s := &server{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.calls.Add(1)

		if s.later.Load() {
			w.Header().Set("Retry-After", "1")
		}

		w.WriteHeader(int(s.status.Load()))
	}))
	t.Cleanup(s.Close)

	return s
}

// TestUnavailableServers checks that a failing server receives one call per pause. Calls to other servers, and calls after other
// errors, must not be limited.
func TestUnavailableServers(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()

	const attempts = 20

	for name, test := range map[string]struct {
		reason string
		status int
		later  bool
		calls  int32
	}{
		"fails":            {"the server does not work", http.StatusInternalServerError, false, 5},
		"away":             {"a proxy has no server", http.StatusServiceUnavailable, false, 5},
		"rejects":          {"the token is refused for each Bundle", http.StatusUnauthorized, false, 5},
		"has it later":     {"the replica will have the content", http.StatusServiceUnavailable, true, attempts},
		"has no such":      {"another Bundle may be there", http.StatusNotFound, false, attempts},
		"permits others":   {"the role may permit some Bundles", http.StatusForbidden, false, attempts},
		"is no tar":        {"the server responds", http.StatusOK, false, attempts},
		"redirects":        {"the server responds", http.StatusFound, false, attempts},
		"wants less often": {"the server responds", http.StatusTooManyRequests, false, attempts},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := newServer(t), newServer(t)
			first.status.Store(int32(test.status))
			first.later.Store(test.later)
			second.status.Store(http.StatusNotFound)

			authority := append(authorityOf(first), authorityOf(second)...)

			client, err := content.NewClient(content.ClientOptions{
				Token: "x", CA: authority, Timeout: time.Minute, Pause: time.Hour, Limits: archive.DefaultLimits(),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()

			for range attempts {
				if err = client.Fetch(t.Context(), content.URL(first.URL, "a"), "", root); err == nil {
					t.Fatal("nothing was fetched without an error")
				}
			}

			if got := first.calls.Load(); got != test.calls {
				t.Errorf("%s: %d calls, want %d", test.reason, got, test.calls)
			}

			if held := test.calls < attempts; held && (!errors.Is(err, content.ErrUnavailable) || !strings.Contains(err.Error(), "is unavailable: 5 calls in a row")) {
				t.Errorf("the error is %v", err)
			}

			_ = client.Fetch(t.Context(), content.URL(second.URL, "a"), "", root)

			if second.calls.Load() != 1 {
				t.Error("another server is not called")
			}
		})
	}
}

// TestServerComesBack checks that a successful call after the pause closes the circuit breaker.
func TestServerComesBack(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()

	server := newServer(t)
	server.status.Store(http.StatusBadGateway)

	client, err := content.NewClient(content.ClientOptions{
		Token: "x", CA: authorityOf(server), Timeout: time.Minute, Pause: 50 * time.Millisecond, Limits: archive.DefaultLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	unavailable := func() bool {
		return strings.Contains(client.Fetch(t.Context(), content.URL(server.URL, "a"), "", root).Error(), "is unavailable")
	}
	until := func(want bool, problem string) {
		t.Helper()

		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()

		for deadline := time.Now().Add(time.Minute); unavailable() != want; <-ticker.C {
			if time.Now().After(deadline) {
				t.Fatal(problem)
			}
		}
	}

	// A slow machine may let the pause end between two calls, so the number of calls that the server gets varies.
	until(true, "the circuit breaker does not open")
	server.status.Store(http.StatusNotFound)
	until(false, "the server is not called again")
}

func authorityOf(server *server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
