package gardenclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// newClient returns a client for a server with the handler.
func newClient(t *testing.T, kind gardenclient.Kind, handler http.HandlerFunc) *gardenclient.Client {
	t.Helper()

	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)

	client, err := gardenclient.New(&rest.Config{Host: server.URL}, gardenclient.Options{
		Namespace: "garden-local", Kind: kind,
		System: upstream.New(upstream.Options{Name: "gardener", Title: "Gardener", Component: failure.ComponentGardenerClient, Calls: 1, Variable: "APP_GARDENER_CALLS"}),
	})
	if err != nil {
		t.Fatal(err)
	}

	return client
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

func TestListsAreReadPageByPage(t *testing.T) {
	client := newClient(t, gardenclient.CredentialsBinding, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") == "" {
			t.Error("the request has no limit")
		}

		switch r.URL.Query().Get("continue") {
		case "":
			reply(w, http.StatusOK, `{"metadata": {"continue": "2"}, "items": [{"metadata": {"name": "c-1"}, "spec": {"credentialsBindingName": "a"}}]}`)
		default:
			reply(w, http.StatusOK, `{"items": [{"metadata": {"name": "c-2"}, "spec": {"secretBindingName": "a"}}, {"metadata": {"name": "c-3"}, "spec": {"credentialsBindingName": "b", "secretBindingName": "b"}}]}`)
		}
	})

	got, err := client.Shoots(t.Context())
	if diff := cmp.Diff(map[string][]string{"a": {"c-1", "c-2"}, "b": {"c-3"}}, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

func TestSecretBindings(t *testing.T) {
	var paths []string

	client := newClient(t, gardenclient.SecretBinding, func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.Method+" "+r.URL.Path+"?"+r.URL.Query().Get("labelSelector"))

		if r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/a") {
			reply(w, http.StatusOK, `{"items": []}`)

			return
		}

		reply(w, http.StatusOK, `{"metadata": {"name": "a", "resourceVersion": "7", "labels": {"hyperscalerType": "gcp", "tenantName": "t", "dirty": "true",
			"shared": "true", "internal": "true", "euAccess": "true"}}}`)
	})

	got, err := client.Account(t.Context(), "a")
	if diff := cmp.Diff(accountpool.Account{
		Name: "a", Version: "7", Type: "gcp", Tenant: "t", Dirty: true, Shared: true, Internal: true, EUAccess: true,
	}, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}

	if _, err := client.Accounts(t.Context(), "gcp"); err != nil {
		t.Error(err)
	}

	if err := client.SetLabels(t.Context(), got); err != nil {
		t.Error(err)
	}

	const path = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-local/secretbindings"
	if diff := cmp.Diff([]string{"GET " + path + "/a?", "GET " + path + "?hyperscalerType=gcp", "PATCH " + path + "/a?"}, paths); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestErrorsOfTheAPIServer covers the error responses of the API server. TestAccountThatIsLost and TestAccountThatChanges in
// package accountpool cover a missing and a changed account.
//
//faults:table account-pool.md#gardener
func TestErrorsOfTheAPIServer(t *testing.T) {
	status := func(code int, reason, message string) string {
		return fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "message": %q, "code": %d}`, reason, message, code)
	}
	forbidden := func(message string) string {
		return status(403, "Forbidden", `credentialsbindings "a" is forbidden: `+message)
	}

	for name, c := range map[string]struct {
		code   int
		body   string
		want   failure.Kind
		detail string
	}{
		"401": {401, status(401, "Unauthorized", "Unauthorized"), failure.Transient, "Unauthorized"},
		"403, because the role is missing": {
			403, forbidden(`User "broker" cannot list resource "credentialsbindings"`), failure.Transient, `User "broker" cannot list`,
		},
		"403, because an admission plugin has too many requests or is slow": {
			403, forbidden(`aws provider secret sanity check failed: client rate limiter Wait returned an error: context canceled`), failure.Transient, "client rate limiter",
		},
		"403, because the API server is starting": {403, forbidden("not yet ready to handle request"), failure.Transient, "not yet ready"},
		"403 for another cause":                   {403, forbidden("no"), failure.Transient, "is forbidden: no"},
		"400, 422/400":                            {400, status(400, "BadRequest", "not so"), failure.Invalid, "not so"},
		"400, 422/422":                            {422, status(422, "Invalid", "metadata.labels: Invalid value"), failure.Invalid, "metadata.labels"},
		"returns no JSON":                         {200, "<html>", failure.Transient, ""},
		"429, 503 with Retry-After/429":           {429, status(429, "TooManyRequests", "slow down"), failure.Transient, "slow down"},
		"429, 503 with Retry-After/503":           {503, status(503, "ServiceUnavailable", "soon"), failure.Transient, "soon"},
		"408, 500 and other statuses/408":         {408, status(408, "Timeout", "late"), failure.Transient, "late"},
		"408, 500 and other statuses/500":         {500, status(500, "InternalError", "etcd"), failure.Transient, "etcd"},
		"is another server, or does not serve the kind of the accounts": {
			404, "404 page not found", failure.Transient, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			client := newClient(t, gardenclient.CredentialsBinding, func(w http.ResponseWriter, _ *http.Request) {
				calls++

				w.Header().Set("Retry-After", "1")
				reply(w, c.code, c.body)
			})

			_, err := client.Account(t.Context(), "a")
			got := failure.Of(err)
			faulttable.Shows(t, "account-pool.md#gardener", name, got.Text)

			if got.Kind != c.want || !strings.HasPrefix(got.Text, `reading the account "a": `) || calls != 1 {
				t.Errorf("got %s after %d calls, %v", got.Kind, calls, err)
			}

			if !strings.Contains(got.Detail, c.detail) || (got.Detail == "") != (c.detail == "") || c.detail != "" && strings.Contains(got.Text, c.detail) {
				t.Errorf("got the text %q and the detail %q", got.Text, got.Detail)
			}
		})
	}

	for code, want := range map[int]failure.Kind{http.StatusNotFound: failure.NotFound, http.StatusConflict: failure.Conflict} {
		reason := map[int]string{http.StatusNotFound: "NotFound", http.StatusConflict: "Conflict"}[code]
		client := newClient(t, gardenclient.CredentialsBinding, func(w http.ResponseWriter, _ *http.Request) { reply(w, code, status(code, reason, "so")) })

		if _, err := client.Account(t.Context(), "a"); failure.KindOf(err) != want || failure.Of(err).Detail != "so" {
			t.Errorf("status %d: %v", code, err)
		}
	}
}

// TestSilentServer calls a server that does not respond in time, and one that is unreachable.
//
//faults:table account-pool.md#gardener
func TestSilentServer(t *testing.T) {
	slow := newClient(t, gardenclient.CredentialsBinding, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })

	away, err := gardenclient.New(&rest.Config{Host: "http://127.0.0.1:1"}, gardenclient.Options{Namespace: "garden-local", Kind: gardenclient.CredentialsBinding})
	if err != nil {
		t.Fatal(err)
	}

	for name, client := range map[string]*gardenclient.Client{"is unreachable, or slow/unreachable": away, "is unreachable, or slow/slow": slow} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()

			_, err := client.Account(ctx, "a")
			got := failure.Of(err)
			faulttable.Shows(t, "account-pool.md#gardener", name, got.Text)

			if got.Kind != failure.Transient || got.Detail != "" {
				t.Errorf("got %s, %q, %q", got.Kind, got.Text, got.Detail)
			}
		})
	}
}

func TestEndlessResponseIsRejected(t *testing.T) {
	client := newClient(t, gardenclient.CredentialsBinding, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})

	if _, err := client.Account(t.Context(), "a"); !failure.Is(err, failure.Transient) {
		t.Errorf("got %v", err)
	}
}

func TestCallsPassTheGuard(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	client := newClient(t, gardenclient.CredentialsBinding, func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}

		<-release
		reply(w, http.StatusOK, `{}`)
	})

	done := make(chan error, 1)

	go func() { done <- client.Probe(context.WithoutCancel(t.Context())) }()

	<-entered

	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a call whose time is up before it waits fails for another reason
	defer cancel()

	if err := client.Probe(ctx); failure.Of(err).Reason != failure.ReasonBusy {
		t.Errorf("the limit is one call, got %v", err)
	}

	close(release)

	if err := <-done; err != nil {
		t.Error(err)
	}
}
