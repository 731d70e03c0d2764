package provisionerclient_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/provisionerclient"
)

// request is a GraphQL request that the server received.
type request struct {
	Query     string         `json:"query"`
	Variables map[string]any `json:"variables"`
	header    http.Header
}

// playProvisioner starts a server that gives the same answer to every request. It returns a client of the server, and the
// last request, which is set after each call.
func playProvisioner(t *testing.T, status int, answer string) (*provisionerclient.Client, *request) {
	t.Helper()

	got := new(request)
	client := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(got); err != nil {
			t.Errorf("the request is not JSON: %v", err)
		}

		got.header = r.Header

		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})

	return client, got
}

// clientOf starts a server with the handler and returns a client of the server. The timeout is too long for a passing test.
func clientOf(t *testing.T, handler http.HandlerFunc) *provisionerclient.Client {
	t.Helper()

	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)

	return newClient(t, provisionerclient.Options{URL: server.URL, Timeout: time.Minute})
}

func newClient(t *testing.T, options provisionerclient.Options) *provisionerclient.Client {
	t.Helper()

	client, err := provisionerclient.New(options)
	if err != nil {
		t.Fatal(err)
	}

	return client
}
