package gardener_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/reload"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// patience is the timeout of a test that waits for an event.
const patience = 2 * time.Minute

// tokenServer is an API server of Gardener that accepts only the current token. Running watches continue when the token changes.
type tokenServer struct {
	*testing.T

	token        atomic.Value
	began, ended chan string // the tokens of watches that start and end
	appear       chan string // names of Shoots that a watch reports
	url          string
	authority    []byte
}

func newTokenServer(t *testing.T) *tokenServer {
	t.Helper()

	made := &tokenServer{T: t, began: make(chan string, 9), ended: make(chan string, 9), appear: make(chan string)}
	server := httptest.NewTLSServer(made) // Without TLS, client-go sends no credentials.
	t.Cleanup(server.Close)
	made.url, made.authority = server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	return made
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")

	shown := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	refuse := func(status int, reason string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, status)
	}

	switch {
	case shown != s.token.Load():
		refuse(http.StatusUnauthorized, "Unauthorized")
	case r.URL.Path == "/apis/core.gardener.cloud/v1beta1":
		fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"core.gardener.cloud/v1beta1",
			"resources":[{"name":"shoots","kind":"Shoot","namespaced":true}]}`)
	case r.URL.Query().Get("sendInitialEvents") == "true": // The client falls back to a list.
		refuse(http.StatusUnprocessableEntity, "Invalid")
	case r.URL.Query().Get("watch") == "true":
		s.watch(w, r, shown)
	case !strings.HasSuffix(r.URL.Path, "/shoots"): // discovery
		fmt.Fprint(w, `{}`)
	default:
		fmt.Fprint(w, `{"kind":"ShootList","apiVersion":"core.gardener.cloud/v1beta1","metadata":{"resourceVersion":"7"},"items":[]}`)
	}
}

func (s *tokenServer) watch(w http.ResponseWriter, r *http.Request, shown string) {
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()

	s.began <- shown
	defer func() { s.ended <- shown }()

	for {
		select {
		case <-r.Context().Done():
			return
		case name := <-s.appear:
			fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1",
				"metadata":{"name":%q,"namespace":"garden-local","resourceVersion":"8"}}}`, name)

			_ = http.NewResponseController(w).Flush()
		}
	}
}

// follower contains a client returned by Follow and the events of its watch.
type follower struct {
	*testing.T

	server   *tokenServer
	client   *gardener.Client
	path     string
	clock    *clocktesting.FakeClock
	metrics  *prometheus.Registry
	reported chan string
}

// follow starts a client whose kubeconfig contains the token "first".
func follow(t *testing.T) follower {
	t.Helper()

	f := follower{
		T: t, server: newTokenServer(t), path: filepath.Join(t.TempDir(), "kubeconfig"), clock: clocktesting.NewFakeClock(time.Now()),
		metrics: prometheus.NewRegistry(), reported: make(chan string, 9),
	}
	f.server.token.Store("first")
	f.write("first")

	files := reload.NewWatcher(logging.Discard(), f.clock, f.metrics)

	var err error
	if f.client, err = gardener.Follow(f.path, files, "garden-local"); err != nil {
		t.Fatal(err)
	}

	run(t, files.Part().Run)
	f.until("the files are followed", f.clock.HasWaiters)
	run(t, func(ctx context.Context) error { return f.client.Watch(ctx, func(name string) { f.reported <- name }) })
	f.heard("the watch starts", f.server.began, "first")

	return f
}

// write writes a kubeconfig with the token. An empty token makes the file invalid.
func (f follower) write(token string) {
	f.Helper()

	text := "apiVersion: v1\nkind: Config\nusers: [{name: g, user: {token: " + token + "}}]\n" +
		"clusters: [{name: g, cluster: {server: '" + f.server.url + "', certificate-authority-data: " +
		base64.StdEncoding.EncodeToString(f.server.authority) + "}}]\n" +
		"contexts: [{name: g, context: {cluster: g, user: g}}]\ncurrent-context: g\n"
	if token == "" {
		text = "current-context: nowhere"
	}

	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
}

// rewrite calls write, then advances the clock by the polling interval of the file.
func (f follower) rewrite(token string) {
	f.Helper()
	f.write(token)
	f.clock.Step(reload.Every)
}

func (f follower) heard(what string, from <-chan string, want string) {
	f.Helper()

	select {
	case got := <-from:
		if got != want {
			f.Fatalf("%s: got %q, want %q", what, got, want)
		}
	case <-time.After(patience):
		f.Fatalf("%s: no event for %q", what, want)
	}
}

func (f follower) until(what string, holds func() bool) {
	f.Helper()

	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()

	for deadline := time.Now().Add(patience); !holds(); <-look.C {
		if time.Now().After(deadline) {
			f.Fatalf("timeout: %s", what)
		}
	}
}

// rejected returns a condition for until. It holds if the metric counts want invalid files.
func (f follower) rejected(want int) func() bool {
	text := fmt.Sprintf("# HELP environment_broker_files_rejected 1 while a changed file is rejected as invalid or unreadable; "+
		"its last valid contents stay in use.\n# TYPE environment_broker_files_rejected gauge\n"+
		"environment_broker_files_rejected{file=\"gardener kubeconfig\"} %d\n", want)

	return func() bool { return testutil.GatherAndCompare(f.metrics, strings.NewReader(text)) == nil }
}

func (f follower) letIn() bool { return f.client.Probe(f.Context()) == nil }

// TestKubeconfigIsFollowed simulates an operator who writes new credentials to the file and then revokes the old ones. The watch
// and the calls must use the new credentials.
func TestKubeconfigIsFollowed(t *testing.T) {
	f := follow(t)

	f.server.token.Store("second") // The running watch continues.
	f.rewrite("second")
	f.heard("the watch of the old credentials ends", f.server.ended, "first")
	f.heard("another one starts with the new credentials", f.server.began, "second")

	f.server.appear <- "c-new"

	f.heard("the new watch reports changes", f.reported, "c-new")

	if !f.letIn() {
		t.Error("calls use the old credentials")
	}
}

// TestExpiredCredentialsAreReplaced simulates credentials that expire before Gardener accepts their replacement. The watch must
// resume once Gardener accepts the credentials in the file.
func TestExpiredCredentialsAreReplaced(t *testing.T) {
	f := follow(t)
	f.server.token.Store("second")

	if err := f.client.Probe(t.Context()); !failure.Is(err, failure.Transient) {
		t.Errorf("rejected credentials returned %v, want a transient error", err)
	}

	f.rewrite("third") // Gardener does not accept the new token yet.
	f.heard("the watch of the old credentials ends", f.server.ended, "first")
	f.rewrite("second")
	f.heard("the watch starts once the token is accepted", f.server.began, "second")

	if !f.letIn() {
		t.Error("calls use the old credentials")
	}
}

func TestInvalidKubeconfigIsIgnored(t *testing.T) {
	f := follow(t)

	f.rewrite("")
	f.until("the metric reports the rejected file", f.rejected(1))

	if !f.letIn() {
		t.Error("the previous kubeconfig is not in use any more")
	}

	select {
	case <-f.server.ended:
		t.Error("the watch ended without need")
	default:
	}

	f.rewrite("first")
	f.until("the file is valid again", f.rejected(0))

	if _, err := gardener.Follow(f.path+".none", reload.NewWatcher(logging.Discard(), f.clock, prometheus.NewRegistry()), "garden-local"); err == nil {
		t.Error("New accepts a missing kubeconfig")
	}
}
