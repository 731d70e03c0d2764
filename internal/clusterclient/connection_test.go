package clusterclient_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clusterclient"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// TestConnectionsEndWithTheVisit holds that no connection to a runtime outlives the call that has made it: there are as many runtimes as
// instances, and each would keep one.
func TestConnectionsEndWithTheVisit(t *testing.T) {
	cases := map[string]struct {
		reason string
		visit  func(access clusterclient.Access) error
	}{
		"probe": {"it asks once", func(access clusterclient.Access) error { return access.Probe(t.Context(), instance()) }},
		"grant": {"it asks several times, over one connection", func(access clusterclient.Access) error {
			_, err := access.Grant(t.Context(), instance(), binding())

			return err
		}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var made, ended sync.WaitGroup

			made.Add(1) // a second one panics
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

			if err := c.visit(clusterclient.New(kubeconfigs{text: written(t, kubeconfig(server))})); err != nil {
				t.Fatal(err)
			}

			within(t, &ended, c.reason)
		})
	}
}

// within fails the test when what is waited for does not happen in time.
func within(t *testing.T, awaited *sync.WaitGroup, reason string) {
	t.Helper()

	done := make(chan struct{})

	go func() {
		awaited.Wait()
		close(done)
	}()

	select {
	case <-done:
	case <-time.After(time.Minute): // a client keeps one for longer
		t.Fatalf("%s: the connection stays open", reason)
	}
}

// TestRedirectIsNotFollowed holds that credentials are shown to nobody but the runtime.
func TestRedirectIsNotFollowed(t *testing.T) {
	stranger := runtime(t, http.StatusOK)
	server := httptest.NewTLSServer(http.RedirectHandler(stranger.URL+"/shoot/version", http.StatusFound))
	t.Cleanup(server.Close)

	err := clusterclient.New(kubeconfigs{text: written(t, kubeconfig(server))}).Probe(t.Context(), instance())
	if !failure.Is(err, failure.Transient) {
		t.Errorf("got %v, want that the runtime does not answer", err)
	}
}
