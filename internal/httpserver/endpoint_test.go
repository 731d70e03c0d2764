package httpserver_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/storage"
)

func TestRefusalOf(t *testing.T) {
	const (
		internal    = "An internal error occurred. The service's log has the details."
		unavailable = "The database does not respond. Try again later."
	)

	network := &net.OpError{Op: "dial", Err: errors.New("refused")}

	_, unreachable := storage.Open(t.Context(), storage.Config{
		Driver: storage.DriverPostgres, User: "me", Host: "127.0.0.1", Port: "1", Name: "broker", SSLMode: "disable",
	})

	cases := map[string]struct {
		reason string
		err    error
		want   httpserver.Refusal
	}{
		"Refusal":    {"a wrapped refusal is unchanged", fmt.Errorf("x: %w", httpserver.Refuse(410, "gone")), httpserver.Refusal{Status: 410, Description: "gone"}},
		"Plain":      {"the text of an internal error is only logged", errors.New("password"), httpserver.Refusal{Status: 500, Description: internal}},
		"TooLarge":   {"a body beyond the limit", &http.MaxBytesError{Limit: 64 << 10}, httpserver.Refusal{Status: 413, Code: "RequestEntityTooLarge", Description: "The request body is larger than 64 KiB. Shorten the request."}},
		"Network":    {"an unreachable database", fmt.Errorf("x: %w", unreachable), httpserver.Refusal{Status: 503, Description: unavailable, RetryAfter: 5 * time.Second}},
		"Upstream":   {"a system other than the database", fmt.Errorf("x: %w", network), httpserver.Refusal{Status: 500, Description: internal}},
		"Connection": {"a closed connection to the database", driver.ErrBadConn, httpserver.Refusal{Status: 503, Description: unavailable, RetryAfter: 5 * time.Second}},
		"Deadline":   {"a slow database", context.DeadlineExceeded, httpserver.Refusal{Status: 503, Description: unavailable, RetryAfter: 5 * time.Second}},
		"Invalid":    {"the text of a failure is sent to the client", failure.New(failure.Invalid, "no"), httpserver.Refusal{Status: 400, Description: "no"}},
		"Transient":  {"a transient failure has a Retry-After", failure.Wrap(failure.Transient, network, "away"), httpserver.Refusal{Status: 503, Description: "away", RetryAfter: 5 * time.Second}},
		"Internal":   {"the text of an internal failure is only logged", failure.New(failure.Internal, "secret"), httpserver.Refusal{Status: 500, Description: internal}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := *httpserver.RefusalOf(test.err)
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(httpserver.Refusal{}, "Cause")); diff != "" {
				t.Errorf("\n%s\nrefusal: -want +got\n%s", test.reason, diff)
			}

			if got.Status >= 500 && got.Cause == nil {
				t.Errorf("\n%s\nthe cause is lost", test.reason)
			}
		})
	}
}

func TestResponses(t *testing.T) {
	cases := map[string]struct {
		reason   string
		endpoint httpserver.Endpoint
		want     string
	}{
		"JSON": {"bodies are JSON, without escaped HTML", func(*http.Request) (httpserver.Response, error) {
			return httpserver.OK(map[string]string{"a": "<&>"}), nil
		}, `200 application/json {"a":"<&>"}`},
		"Bytes": {"bytes are sent unchanged", func(*http.Request) (httpserver.Response, error) {
			return httpserver.Response{Status: 200, Body: []byte("x: y"), Header: http.Header{"Content-Type": {"application/yaml"}}}, nil
		}, `200 application/yaml x: y`},
		"Empty": {"a response without a body has no Content-Type", func(*http.Request) (httpserver.Response, error) { return httpserver.Response{Status: 304}, nil }, `304  `},
		"Retry": {"Retry-After has whole seconds, at least one", func(*http.Request) (httpserver.Response, error) {
			return httpserver.OK(nil).RetryAfter(time.Millisecond), nil
		}, `200  1`},
		"Refusal": {"a refusal with a code", func(*http.Request) (httpserver.Response, error) {
			return httpserver.Response{}, &httpserver.Refusal{Status: 422, Code: "AsyncRequired", Description: "no", RetryAfter: 90 * time.Second}
		}, `422 application/json {"error":"AsyncRequired","description":"no"}90`},
		"Long": {"descriptions are cut", func(*http.Request) (httpserver.Response, error) {
			return httpserver.Response{}, httpserver.Refuse(400, strings.Repeat("ü", 256))
		}, `400 application/json {"description":"` + strings.Repeat("ü", 127) + "…" + strings.Repeat("ü", 127) + `"}`},
		"Impossible": {"a body that cannot be encoded is an internal error", func(*http.Request) (httpserver.Response, error) {
			return httpserver.OK(func() {}), nil
		}, `500 application/json {"description":"An internal error occurred. The service's log has the details."}`},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			test.endpoint.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))

			got := fmt.Sprintf("%d %s %s%s", recorder.Code, recorder.Header().Get("Content-Type"),
				strings.TrimSuffix(recorder.Body.String(), "\n"), recorder.Header().Get("Retry-After"))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("\n%s\nresponse: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

func TestLogLevels(t *testing.T) {
	logger, hook := logtest.NewNullLogger()
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))

	cases := map[string]struct {
		reason  string
		handler http.HandlerFunc
		level   string
		status  int
	}{
		"Success": {"a success is logged at level info", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil) }, "info", 200},
		"Refused": {"a rejection is logged at level info", httpserver.Endpoint(func(*http.Request) (httpserver.Response, error) {
			return httpserver.Response{}, httpserver.Refuse(404, "x")
		}).ServeHTTP, "info", 404},
		"Failed":     {"an internal error is logged at level error", httpserver.Endpoint(func(*http.Request) (httpserver.Response, error) { return httpserver.Response{}, errors.New("x") }).ServeHTTP, "error", 500},
		"Panic":      {"a panic is logged as an error, and the client gets a response", func(http.ResponseWriter, *http.Request) { panic("x") }, "error", 500},
		"LatePanic":  {"a panic after the start of the response keeps its status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK); panic("x") }, "info", 200},
		"NoDeadline": {"the work continues when the client disconnects", httpserver.Deadline(time.Hour)(http.HandlerFunc(stillWorks)).ServeHTTP, "info", 200},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, hangUp := context.WithCancel(t.Context())
			hangUp()

			recorder := httptest.NewRecorder()
			httpserver.Wrap(test.handler, httpserver.EchoRequestIdentity, httpserver.Observe(logger, nil, clock)).
				ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, "/x?secret=1", nil))

			line := hook.LastEntry()
			got := fmt.Sprintf("%s %v %v", line.Level, line.Data["status"], line.Data["path"])

			if diff := cmp.Diff(fmt.Sprintf("%s %d /x", test.level, test.status), got); diff != "" {
				t.Errorf("\n%s\nlog line: -want +got\n%s", test.reason, diff)
			}

			if recorder.Code != test.status {
				t.Errorf("\n%s\nwant %d, got %d", test.reason, test.status, recorder.Code)
			}
		})
	}
}

func stillWorks(w http.ResponseWriter, r *http.Request) {
	if r.Context().Err() != nil {
		w.WriteHeader(http.StatusInternalServerError)

		return
	}

	w.WriteHeader(http.StatusOK)
}
