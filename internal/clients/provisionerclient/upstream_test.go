package provisionerclient_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// refusing is a transport that fails every request with err.
type refusing struct{ err error }

func (r refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, r.err }

// rejecting returns a client with a wrapped transport that fails every request with the error. A request that bypasses the
// wrapped transport reaches the server and gets the answer.
func rejecting(t *testing.T, err error, answer string) *provisionerclient.Client {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	t.Cleanup(server.Close)

	return newClient(t, provisionerclient.Options{
		URL: server.URL, Timeout: time.Minute,
		WrapTransport: func(http.RoundTripper) http.RoundTripper { return refusing{err} },
	})
}

func TestRejectedCallNamesTheCircuitBreaker(t *testing.T) {
	refused := failure.New(failure.Transient, "the Provisioner is unavailable").WithReason("away", "garden")
	client := rejecting(t, refused, "")

	_, err := client.OperationStatus(t.Context(), "tenant", "operation")
	if known := failure.Of(err); !errors.Is(err, refused) || known.Text != refused.Text || known.Reason != "away" {
		t.Errorf("got %v, want the text of the circuit breaker", err)
	}
}

func TestChangesBypassTheCircuitBreaker(t *testing.T) {
	client := rejecting(t, errors.New("the circuit breaker is open"), `{"data":{"result":{"cursor":"c-1","operations":[]}}}`)

	changes, err := client.Changes(t.Context(), "", time.Second)
	if err != nil || changes.Cursor != "c-1" {
		t.Errorf("got %+v, %v", changes, err)
	}
}

func TestProbe(t *testing.T) {
	client, got := playProvisioner(t, http.StatusOK, `{"data":{"__typename":"Query"}}`)

	if err := client.Probe(t.Context()); err != nil || got.Query != "query Probe { __typename }" {
		t.Errorf("the probe returned %v and sent %q", err, got.Query)
	}

	client, _ = playProvisioner(t, http.StatusBadGateway, "no")
	if err := client.Probe(t.Context()); !failure.Is(err, failure.Transient) {
		t.Errorf("a failing Provisioner: got %v", err)
	}
}
