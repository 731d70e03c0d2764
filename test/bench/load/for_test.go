package load

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// server is an http.RoundTripper that responds to each request after a delay, which is its value.
type server time.Duration

func (s server) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(s)) // fake time

	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// TestFor checks that responses during the warm-up do not count for the rate and the latencies.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			clients = 4
			takes   = 15 * time.Millisecond
			warmUp  = 100 * time.Millisecond // 6 responses per client
			period  = 200 * time.Millisecond // 14 responses per client, the last one at the very end
		)

		generator := New(clients)
		generator.client.Transport = server(takes)

		rate, err := generator.For(t.Context(), warmUp, period, func(int) Request {
			return Request{Method: http.MethodGet, URL: "http://server.example.com", Want: http.StatusOK}
		})
		if err != nil {
			t.Fatal(err)
		}

		const want = clients * 14
		if counted := len(rate.Latencies); counted != want || rate.PerSecond != want/period.Seconds() {
			t.Errorf("%d responses, %g per second, want %d in %s", counted, rate.PerSecond, want, period)
		}
	})
}
