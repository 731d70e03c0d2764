package httpserver_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program"
)

func passes(context.Context) error { return nil }

func get(t *testing.T, h *httpserver.Health, path string) (status int, body string) {
	t.Helper()

	recorder := httptest.NewRecorder()
	h.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))

	return recorder.Code, recorder.Body.String()
}

func TestReadiness(t *testing.T) {
	cases := map[string]struct {
		reason     string
		check      func(context.Context) error
		stopping   bool
		wantStatus int
		wantBody   string
	}{
		"ready": {
			reason: "the service is ready for requests", check: passes,
			wantStatus: http.StatusOK, wantBody: "ok\n",
		},
		"database down": {
			reason:     "requests would fail; the details are only logged",
			check:      func(context.Context) error { return errors.New("dial 10.0.0.1: password hush") },
			wantStatus: http.StatusServiceUnavailable, wantBody: "not ready: the service's log has the cause\n",
		},
		"stopping": {
			reason: "a stopping service gets no new requests", check: passes, stopping: true,
			wantStatus: http.StatusServiceUnavailable, wantBody: "stopping\n",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := httpserver.NewHealth(c.check, logging.Discard())

			if c.stopping {
				ended, end := context.WithCancel(t.Context())
				end()

				if err := h.Run(ended); err != nil {
					t.Fatal(err)
				}
			}

			if status, body := get(t, h, "/readyz"); status != c.wantStatus || body != c.wantBody {
				t.Errorf("%s: got %d %q, want %d %q", c.reason, status, body, c.wantStatus, c.wantBody)
			}

			build := program.ReadBuild()
			if status, body := get(t, h, "/healthz"); status != http.StatusOK || body != "ok\nversion "+build.Version+"\ncommit "+build.Commit+"\n" {
				t.Errorf("%s: /healthz returns %d %q, want success and the version while the process runs", c.reason, status, body)
			}
		})
	}
}

func TestServiceIsReadyUntilItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := httpserver.NewHealth(passes, logging.Discard())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)

		go func() { ended <- h.Run(ctx) }()

		synctest.Wait()

		if status, _ := get(t, h, "/readyz"); status != http.StatusOK {
			t.Errorf("got %d while the service runs, want ready", status)
		}

		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}

		if status, _ := get(t, h, "/readyz"); status != http.StatusServiceUnavailable {
			t.Errorf("got %d once the service stops, want not ready", status)
		}
	})
}

func TestHangingCheckIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := httpserver.NewHealth(func(ctx context.Context) error {
			<-ctx.Done()

			return ctx.Err()
		}, logging.Discard())

		if status, _ := get(t, h, "/readyz"); status != http.StatusServiceUnavailable || time.Since(began) != 2*time.Second {
			t.Errorf("got %d after %s, want not ready after 2s", status, time.Since(began))
		}
	})
}

func TestFailedCheckIsLogged(t *testing.T) {
	var lines bytes.Buffer

	log, err := logging.New("broker", logging.DefaultConfig(), &lines)
	if err != nil {
		t.Fatal(err)
	}

	get(t, httpserver.NewHealth(func(context.Context) error { return errors.New("no route to the database") }, log), "/readyz")

	if !strings.Contains(lines.String(), "no route to the database") {
		t.Errorf("the log lacks the error: %q", lines.String())
	}
}

func TestMetrics(t *testing.T) {
	h := httpserver.NewHealth(passes, logging.Discard())
	own := prometheus.NewCounter(prometheus.CounterOpts{Name: "tests_total", Help: "Tests."})
	h.Registry().MustRegister(own)
	own.Inc()

	status, body := get(t, h, "/metrics")
	for _, metric := range []string{"tests_total 1", "go_goroutines", `environment_broker_build_info{commit="unknown",go_version="go`} {
		if status != http.StatusOK || !strings.Contains(body, metric) {
			t.Errorf("%d: %s is missing", status, metric)
		}
	}
}
