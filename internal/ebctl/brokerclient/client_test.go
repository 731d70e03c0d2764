package brokerclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
)

func serve(t *testing.T, handler http.HandlerFunc) *brokerclient.Client {
	t.Helper()

	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)

	return newClient(server.URL, time.Minute)
}

func newClient(address string, timeout time.Duration) *brokerclient.Client {
	return brokerclient.New(brokerclient.Config{
		Address: address, Username: "operator", Password: "secret", Timeout: timeout,
		UserAgent: "ebctl/test", NewID: func() string { return "identity-1" },
	})
}

func respond(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}

		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()

	const huge = 8<<20 + 1

	cases := map[string]struct {
		reason    string
		answer    http.HandlerFunc
		want      string
		temporary bool
	}{
		"Words": {
			reason: "an error shows the broker's message and code",
			answer: respond(http.StatusConflict, `{"error": "Conflict", "description": "the id is in use"}`),
			want:   "the id is in use (Conflict, 409)",
		},
		"DescriptionOnly": {
			reason: "the status is shown if an OSB error has no code, which is common",
			answer: respond(http.StatusBadRequest, `{"description": "plan_id is missing."}`),
			want:   "plan_id is missing (400 Bad Request)",
		},
		"CodeOnly": {
			reason: "a code without a message is shown",
			answer: respond(http.StatusUnprocessableEntity, `{"error": "AsyncRequired"}`),
			want:   "the broker responded with AsyncRequired (422 Unprocessable Entity)",
		},
		"Page": {
			reason: "only the status of a proxy's error page is shown", temporary: true,
			answer: respond(http.StatusBadGateway, "<html>password=hunter2</html>"),
			want:   "the broker responded with 502 Bad Gateway",
		},
		"Unavailable": {
			reason: "503 is temporary", temporary: true,
			answer: respond(http.StatusServiceUnavailable, `{}`),
			want:   "the broker responded with 503 Service Unavailable",
		},
		"Redirect": {
			reason: "a redirect is an error, because following it would turn a PUT into a GET",
			answer: respond(http.StatusMovedPermanently, "", "Location", "https://broker.example.com/operations/op"),
			want:   "the broker has moved to https://broker.example.com/operations/op (301 Moved Permanently)",
		},
		"Rubbish": {
			reason: "a successful response without JSON is not from a broker",
			answer: respond(http.StatusOK, "<html>"),
			want: "the response to GET /operations/op is not JSON; is this the address of a broker? " +
				"invalid character '<' looking for beginning of value",
		},
		"TooLong": {
			reason: "the size of responses is limited",
			answer: respond(http.StatusOK, strings.Repeat(" ", huge)),
			want:   "the response to GET /operations/op exceeds 8 MiB; is this the address of a broker?",
		},
		"CutShort": {
			reason: "a truncated response is an error", temporary: true,
			answer: respond(http.StatusOK, "{", "Content-Length", "100"),
			want:   "does not respond: the connection was closed: unexpected EOF",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, _, err := serve(t, tc.answer).Operation(t.Context(), "op")
			if err == nil || !strings.HasSuffix(err.Error(), tc.want) {
				t.Fatalf("%s: got error %v, want %q", tc.reason, err, tc.want)
			}

			var passing interface{ Temporary() bool }
			if got := errors.As(err, &passing) && passing.Temporary(); got != tc.temporary {
				t.Errorf("%s: temporary is %t, want %t", tc.reason, got, tc.temporary)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		status int
		header string
		want   time.Duration
	}{
		"Success": {reason: "a successful response can have a Retry-After", status: http.StatusOK, header: "3", want: 3 * time.Second},
		"Failure": {reason: "an error response can have a Retry-After", status: http.StatusServiceUnavailable, header: "5", want: 5 * time.Second},
		"Date":    {reason: "dates are ignored", status: http.StatusOK, header: "Fri, 01 May 2026 10:00:00 GMT"},
		"Minus":   {reason: "negative values are ignored", status: http.StatusOK, header: "-1"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, got, _ := serve(t, respond(tc.status, "{}", "Retry-After", tc.header)).Operation(t.Context(), "op")
			if got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()

	t.Run("Refused", func(t *testing.T) {
		t.Parallel()

		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()

		_, err := newClient(server.URL, time.Minute).Catalog(t.Context(), "")

		var unreachable *brokerclient.UnreachableError
		if !errors.As(err, &unreachable) || !strings.HasPrefix(err.Error(), "the broker at "+server.URL+" does not respond: ") {
			t.Errorf("the error does not name the broker: %v", err)
		}
	})

	t.Run("Slow", func(t *testing.T) {
		t.Parallel()

		released := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))

		defer server.Close()
		defer close(released)

		_, err := newClient(server.URL, time.Millisecond).Catalog(t.Context(), "")

		want := "the broker at " + server.URL + " does not respond: no response within 1ms: context deadline exceeded"
		if err == nil || err.Error() != want {
			t.Errorf("slow broker: got %v, want %s", err, want)
		}
	})

	t.Run("Stopped", func(t *testing.T) {
		t.Parallel()

		ctx, cancel := context.WithCancel(t.Context())
		client := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		})

		if _, err := client.Catalog(ctx, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled call: got %v, want the context's error", err)
		}
	})
}
