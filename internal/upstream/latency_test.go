package upstream_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/environment-broker/environment-broker/internal/upstream"
)

// TestLatency calls a system that takes longer with each call, and checks the median and the 95th percentile of the last 256 calls.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := upstream.New(upstream.Options{Name: "test", Title: "the test", Calls: 1})

		var takes time.Duration

		transport := system.Transport(roundTripper(func(request *http.Request) (*http.Response, error) {
			select {
			case <-time.After(takes):
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}

			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: request}, nil
		}))

		call := func(ctx context.Context) {
			response, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://test/", http.NoBody))
			if err == nil {
				_ = response.Body.Close()
			}
		}

		if got := system.Status().Latency; got != (upstream.Latency{}) {
			t.Errorf("without calls: %+v", got)
		}

		takes = time.Second
		call(t.Context())

		if got, want := system.Status().Latency, (upstream.Latency{Calls: 1, Median: time.Second, P95: time.Second}); got != want {
			t.Errorf("one call: got %+v, want %+v", got, want)
		}

		for i := range 300 {
			takes = time.Duration(i+1) * time.Millisecond
			call(t.Context())
		}

		// The caller cancels after a minute, which says nothing about the system.
		canceled, cancel := context.WithCancel(t.Context())
		takes = time.Hour

		time.AfterFunc(time.Minute, cancel)
		call(canceled)

		// Of the calls that took 45 to 300 ms, 128 took at most 172 ms, and 244 of 256 at most 288 ms.
		if got, want := system.Status().Latency, (upstream.Latency{Calls: 256, Median: 172 * time.Millisecond, P95: 288 * time.Millisecond}); got != want {
			t.Errorf("many calls: got %+v, want %+v", got, want)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
