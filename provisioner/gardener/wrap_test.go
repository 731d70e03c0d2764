package gardener_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// gate is a transport that counts requests, and rejects them if refused is set.
type gate struct {
	next    http.RoundTripper
	refused error
	passed  atomic.Int64
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	g.passed.Add(1)

	if g.refused != nil {
		return nil, g.refused
	}

	return g.next.RoundTrip(r)
}

// newClient returns a client for a Gardener that has an empty list of Shoots, and a function that starts a watch. The gate wraps
// the transport of both.
func newClient(t *testing.T, gate *gate) (*gardener.Client, func() error) {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")

		switch {
		case r.URL.Path == "/apis/core.gardener.cloud/v1beta1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"core.gardener.cloud/v1beta1",
				"resources":[{"name":"shoots","kind":"Shoot","namespaced":true}]}`))
		case strings.HasSuffix(r.URL.Path, "/shoots"):
			_, _ = w.Write([]byte(`{"kind":"ShootList","apiVersion":"core.gardener.cloud/v1beta1","items":[]}`))
		default:
			_, _ = w.Write([]byte(`{}`))
		}
	}))
	t.Cleanup(server.Close)

	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: g, cluster: {server: '" + server.URL + "'}}]\n" +
		"contexts: [{name: g, context: {cluster: g}}]\ncurrent-context: g\n"

	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	api, err := gardener.Connect(path, func(next http.RoundTripper) http.RoundTripper {
		gate.next = next

		return gate
	})
	if err != nil {
		t.Fatal(err)
	}

	client := gardener.New(api, "garden-local")

	// The first call also discovers the kinds. It is made here, so that tests count only their own requests.
	if err := client.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}

	return client, func() error {
		events, err := api.Watch(t.Context(), &gardencorev1beta1.ShootList{})
		if err == nil {
			events.Stop()
		}

		return err
	}
}

func TestWatchesBypassWrapper(t *testing.T) {
	gate := &gate{}
	client, watch := newClient(t, gate)

	before := gate.passed.Load()
	if err := client.Probe(t.Context()); err != nil || gate.passed.Load() != before+1 {
		t.Errorf("a list passed the wrapper %d times, want 1: %v", gate.passed.Load()-before, err)
	}

	gate.refused = errors.New("no request passes")
	before = gate.passed.Load()

	if err := watch(); err != nil || gate.passed.Load() != before {
		t.Errorf("a watch passed the wrapper %d times, want 0: %v", gate.passed.Load()-before, err)
	}
}

func TestRejectedRequestExplainsItself(t *testing.T) {
	gate := &gate{}
	client, _ := newClient(t, gate)

	gate.refused = failure.New(failure.Transient, "Gardener is unavailable").WithReason("away", "gardener")

	_, err := client.Get(t.Context(), name)
	known := failure.Of(err)

	if known.Kind != failure.Transient || known.Reason != "away" || known.Component != "gardener" ||
		known.Text != `reading the Shoot "c-first": Gardener is unavailable` {
		t.Errorf("got %s with reason %q in %q: %s", known.Kind, known.Reason, known.Component, known.Text)
	}
}
