package clusterclient_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// TestConnectionsEndWithTheSession checks that a session closes its connections. A service calls many runtimes, so open
// connections would accumulate.
func TestConnectionsEndWithTheSession(t *testing.T) {
	cases := map[string]struct {
		reason string
		call   func(access clusterclient.Access) error
	}{
		"probe": {"one request", func(access clusterclient.Access) error { return access.Probe(t.Context(), instance()) }},
		"grant": {"several requests over one connection", func(access clusterclient.Access) error {
			_, err := access.Grant(t.Context(), instance(), binding())

			return err
		}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var made, ended sync.WaitGroup

			made.Add(1) // a second connection makes the counter negative, which panics
			ended.Add(1)

			server := httptest.NewUnstartedServer(&cluster{statuses: map[string]int{"GET /shoot/version": http.StatusOK}})
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				switch state {
				case http.StateNew:
					made.Done()
				case http.StateClosed:
					ended.Done()
				case http.StateActive, http.StateIdle, http.StateHijacked:
				}
			}
			server.StartTLS()
			defer server.Close()

			if err := c.call(clusterclient.New(kubeconfigs{text: written(t, kubeconfig(server))})); err != nil {
				t.Fatal(err)
			}

			within(t, &ended, c.reason)
		})
	}
}

// within waits for the group and fails the test after a minute.
func within(t *testing.T, awaited *sync.WaitGroup, reason string) {
	t.Helper()

	done := make(chan struct{})

	go func() {
		awaited.Wait()
		close(done)
	}()

	select {
	case <-done:
	case <-time.After(time.Minute): // the idle timeout of an open connection is longer
		t.Fatalf("%s: the connection stays open", reason)
	}
}

// TestRedirectIsNotFollowed checks that the credentials are sent only to the runtime.
func TestRedirectIsNotFollowed(t *testing.T) {
	other := runtime(t, http.StatusOK)
	server := httptest.NewTLSServer(http.RedirectHandler(other.URL+"/shoot/version", http.StatusFound))
	t.Cleanup(server.Close)

	err := clusterclient.New(kubeconfigs{text: written(t, kubeconfig(server))}).Probe(t.Context(), instance())
	if !failure.Is(err, failure.Transient) {
		t.Errorf("got %v, want a transient error", err)
	}
}
