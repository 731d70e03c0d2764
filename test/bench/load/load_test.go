package load_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/test/bench/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const clients = 4

// serve runs a server until the test ends and counts its connections.
func serve(t *testing.T, handler http.HandlerFunc) (url string, connections *atomic.Int64) {
	t.Helper()

	connections = &atomic.Int64{}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)

	return server.URL, connections
}

func newGenerator(t *testing.T) *load.Generator {
	t.Helper()

	generator := load.New(clients)
	t.Cleanup(generator.Close)

	return generator
}

// TestCount checks that each request is sent once, over persistent connections, and that the responses are in the order of
// the requests.
func TestCount(t *testing.T) {
	const total = 200

	url, connections := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })

	responses, err := newGenerator(t).Count(t.Context(), total, func(number int) load.Request {
		return load.Request{Method: http.MethodPut, URL: url, Body: []byte(strconv.Itoa(number)), Want: http.StatusOK}
	})
	if err != nil || len(responses) != total {
		t.Fatalf("want %d responses, got %d and %v", total, len(responses), err)
	}

	for number, response := range responses {
		if string(response.Body) != strconv.Itoa(number) || response.Took <= 0 || response.At.IsZero() {
			t.Errorf("request %d: got the response %+v", number, response)
		}
	}

	if opened := connections.Load(); opened > clients {
		t.Errorf("%d clients opened %d connections, want one each", clients, opened)
	}
}

// TestRefusal checks that a response with an unexpected status fails the load, and that the error contains the response.
func TestRefusal(t *testing.T) {
	url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the database does not respond", http.StatusServiceUnavailable)
	})

	_, err := newGenerator(t).For(t.Context(), 0, time.Minute, func(int) load.Request {
		return load.Request{Method: http.MethodGet, URL: url, Want: http.StatusOK}
	})
	if err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "the database does not respond") {
		t.Errorf("got %v, want the status and the body of the response", err)
	}
}
