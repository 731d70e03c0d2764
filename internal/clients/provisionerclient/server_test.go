package provisionerclient_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
)

type request struct {
	Query     string         `json:"query"`
	Variables map[string]any `json:"variables"`
	header    http.Header
}

// playProvisioner starts a server that sends the same response to every request. It returns a client for the server and a
// pointer to the latest request, which the server overwrites with each request.
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

// clientOf starts a server with the handler and returns a client for the server. The client's timeout is so long that a
// passing test never reaches it.
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
