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

	"github.com/environment-broker/environment-broker/internal/accountpool"
	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// newClient returns a client of a server with the handler.
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

// TestErrorsOfTheAPIServer has cases for the rows of the table in docs/operator/account-pool.md; TestSilentServer has the others.
func TestErrorsOfTheAPIServer(t *testing.T) {
	status := func(code int, reason, message string) string {
		return fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "message": %q, "code": %d}`, reason, message, code)
	}

	for _, c := range []struct {
		reason, body string
		code         int
		want         failure.Kind
		text, detail string
	}{
		{"the account is gone", status(404, "NotFound", `"a" not found`), 404, failure.NotFound, "no such object", `"a" not found`},
		{"another program was faster", status(409, "Conflict", "modified"), 409, failure.Conflict, "changed in the meantime", "modified"},
		{"the token has expired", status(401, "Unauthorized", "Unauthorized"), 401, failure.Transient, "renew them", "Unauthorized"},
		{
			"a role is missing", status(403, "Forbidden", `credentialsbindings "a" is forbidden: User "broker" cannot list resource "credentialsbindings"`), 403,
			failure.Transient, "lack a permission in Gardener: an operator must grant it", `User "broker" cannot list`,
		},
		{
			"an admission plugin has too many requests",
			status(403, "Forbidden", `credentialsbindings "a" is forbidden: aws provider secret sanity check failed: client rate limiter Wait returned an error: context canceled`), 403,
			failure.Transient, "Gardener is overloaded", "client rate limiter",
		},
		{"the server has just started", status(403, "Forbidden", `credentialsbindings "a" is forbidden: not yet ready to handle request`), 403, failure.Transient, "Gardener is not ready yet", "not yet ready"},
		{"the server has too many requests", status(429, "TooManyRequests", "slow down"), 429, failure.Transient, "does not respond correctly", "slow down"},
		{"the patch is invalid", status(422, "Invalid", "metadata.labels: Invalid value"), 422, failure.Invalid, "Gardener rejects it", "metadata.labels"},
		{"the request is invalid", status(400, "BadRequest", "not so"), 400, failure.Invalid, "Gardener rejects it", "not so"},
		{"another plugin forbids the label", status(403, "Forbidden", `credentialsbindings "a" is forbidden: no`), 403, failure.Transient, "an operator must allow it", "is forbidden: no"},
		{"the server is no API server", "404 page not found", 404, failure.Transient, "APP_GARDENER_KUBECONFIG_PATH", ""},
		{"the server fails", status(500, "InternalError", "etcd"), 500, failure.Transient, "does not respond correctly", "etcd"},
		{"the response is no object", "[]", 200, failure.Transient, "does not respond correctly", ""},
	} {
		client := newClient(t, gardenclient.CredentialsBinding, func(w http.ResponseWriter, _ *http.Request) { reply(w, c.code, c.body) })

		_, err := client.Account(t.Context(), "a")
		got := failure.Of(err)
		if got.Kind != c.want || !strings.HasPrefix(got.Text, `reading the account "a": `) || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: got %s, %v", c.reason, got.Kind, err)
		}

		if !strings.Contains(got.Detail, c.detail) || (got.Detail == "") != (c.detail == "") || c.detail != "" && strings.Contains(got.Text, c.detail) {
			t.Errorf("%s: got the text %q and the detail %q", c.reason, got.Text, got.Detail)
		}
	}
}

// TestSilentServer calls a server that does not respond in time, and one that is away.
func TestSilentServer(t *testing.T) {
	slow := newClient(t, gardenclient.CredentialsBinding, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	_, late := slow.Account(ctx, "a")

	away, err := gardenclient.New(&rest.Config{Host: "http://127.0.0.1:1"}, gardenclient.Options{Namespace: "garden-local", Kind: gardenclient.CredentialsBinding})
	if err != nil {
		t.Fatal(err)
	}

	_, refused := away.Account(t.Context(), "a")

	for reason, err := range map[string]error{"slow": late, "away": refused} {
		if got := failure.Of(err); got.Kind != failure.Transient || got.Text != `reading the account "a": Gardener does not respond correctly` || got.Detail != "" {
			t.Errorf("%s: got %s, %q, %q", reason, got.Kind, got.Text, got.Detail)
		}
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

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()

	if err := client.Probe(ctx); failure.Of(err).Reason != failure.ReasonBusy {
		t.Errorf("the limit is one call, got %v", err)
	}

	close(release)

	if err := <-done; err != nil {
		t.Error(err)
	}
}
