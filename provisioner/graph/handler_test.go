package graph_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql/introspection"
	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
)

const askOperation = `{ result: runtimeOperationStatus(id: "op") { id } }`

func TestErrors(t *testing.T) {
	t.Parallel()

	const form = `{"errors":[{"message":%q,"path":["result"],"extensions":{"error_code":%d,"error_component":%q,` +
		`"error_reason":%q}}],"data":{"result":null}}`

	secret := errors.New("password hunter2 refused")

	cases := map[string]struct {
		reason string
		err    error
		want   string
		logged string
	}{
		"Invalid": {
			reason: "The text of an invalid request is unchanged, including percent signs.",
			err:    failure.New(failure.Invalid, "%s", "100% wrong: %s %d %!"),
			want:   fmt.Sprintf(form, "100% wrong: %s %d %!", 400, "provisioner", "err_provisioner_bad_request"),
			logged: "100% wrong",
		},
		"Denied": {
			reason: "The kind determines the code; reason and component are passed on.",
			err:    failure.New(failure.Denied, "not allowed").WithReason("Forbidden", failure.ComponentGardenerClient),
			want:   fmt.Sprintf(form, "not allowed", 403, "k8s client - gardener", "Forbidden"),
		},
		"Wrapped": {
			reason: "The wrapping of an error and its cause are only logged.",
			err:    fmt.Errorf("load operation: %w", failure.Wrap(failure.Transient, secret, "the database does not answer")),
			want:   fmt.Sprintf(form, "the database does not answer", 503, "provisioner", "err_provisioner_internal"),
			logged: "hunter2",
		},
		"Internal": {
			reason: "The text of an internal error is only logged.",
			err:    failure.New(failure.Internal, "hunter2 is wrong"),
			want:   fmt.Sprintf(form, "internal error", 500, "provisioner", "err_provisioner_internal"),
			logged: "hunter2",
		},
		"Unknown": {
			reason: "An error without a kind is internal.",
			err:    secret,
			want:   fmt.Sprintf(form, "internal error", 500, "provisioner", "err_provisioner_internal"),
			logged: "hunter2",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var log bytes.Buffer

			server := startLoggedServer(t, &log, func() error { return tc.err })
			status, got := post(t, server, asTenant(askOperation))

			if diff := cmp.Diff(tc.want, got); diff != "" || status != http.StatusOK {
				t.Errorf("%s\nstatus %d, answer: -want +got:\n%s", tc.reason, status, diff)
			}

			if !strings.Contains(log.String(), tc.logged) {
				t.Errorf("%s\nwant %q in the log, got %s", tc.reason, tc.logged, log.String())
			}
		})
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()

	var log bytes.Buffer

	server := startLoggedServer(t, &log, func() error { panic("hunter2") })
	status, got := post(t, server, asTenant(askOperation))

	if status != http.StatusOK || !strings.Contains(got, `"message":"internal error"`) || strings.Contains(got, "hunter2") {
		t.Errorf("a panic must be an internal error without details: got %d %s", status, got)
	}

	for _, want := range []string{"hunter2", "handler_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("want %q in the log, got %s", want, log.String())
		}
	}
}

// TestInvalidRequestIsNotLogged checks that messages about invalid requests are not logged. They quote parts of the request,
// which may be secret.
func TestInvalidRequestIsNotLogged(t *testing.T) {
	t.Parallel()

	for reason, entry := range map[string]string{
		"value of another type":     `{key: "password", value: 4711, secret: true}`,
		"missing colon":             `{key: "password", value "4711", secret: true}`,
		"unknown field":             `{key: "password", value: "4711", secret: true, values: "4711"}`,
		"text instead of a boolean": `{key: "password", value: "4711", secret: "4711"}`,
	} {
		var log bytes.Buffer

		server := startLoggedServer(t, &log, func() error { return nil })
		query := `mutation { upgradeRuntime(id: "rt", config: {kymaConfig: {version: "1", components: [], configuration: [` + entry + `]}}) { id } }`

		status, got := post(t, server, asTenant(query))
		if status != http.StatusUnprocessableEntity || !strings.Contains(got, `"error_code":400`) {
			t.Errorf("%s: got %d %s", reason, status, got)
		}

		if !strings.Contains(log.String(), "GraphQL") || strings.Contains(log.String(), "4711") {
			t.Errorf("%s: logged %s", reason, log.String())
		}
	}
}

func TestInvalidRequests(t *testing.T) {
	t.Parallel()

	var fragments strings.Builder
	for i := range 40 {
		fmt.Fprintf(&fragments, " fragment f%d on Query { ...f%d ...f%d }", i, i+1, i+1)
	}

	bomb := "{ ...f0 }" + fragments.String() +
		" fragment f40 on Query { " + strings.TrimSuffix(strings.TrimPrefix(askOperation, "{"), "}") + " }"

	cases := map[string]struct {
		reason string
		query  string
		status int
		want   string
	}{
		"Syntax": {
			reason: "Invalid GraphQL has the same status as in Kyma Provisioner, and a code.",
			query:  "{", status: http.StatusUnprocessableEntity, want: `"error_code":400`,
		},
		"UnknownField": {
			reason: "An unknown field is invalid GraphQL.",
			query:  "{ nothing }", status: http.StatusUnprocessableEntity, want: `Cannot query field \"nothing\" on type \"Query\"`,
		},
		"Enum": {
			reason: "An unknown value of an enum is invalid GraphQL.",
			query: strings.Replace(provision, "{\n\truntimeInput",
				`{kymaConfig: {version: "1", profile: Huge, components: []}, runtimeInput`, 1),
			status: http.StatusUnprocessableEntity, want: `Value \"Huge\" does not exist`,
		},
		"Labels": {
			reason: "Labels must be an object.",
			query:  strings.Replace(provision, `{stage: "dev", weight: 1.5}`, `"dev"`, 1),
			status: http.StatusOK, want: `"labels must be a JSON object"`,
		},
		"ManyFields": {
			reason: "The number of fields has a limit.",
			query:  "{" + strings.Repeat(strings.Trim(askOperation, "{}"), 501) + "}", status: http.StatusOK,
			want: "the request selects more than 1000 fields",
		},
		"ManyKubeconfigs": {
			reason: "Aliases must not multiply kubeconfigs, which Gardener signs.",
			query: `{ a: runtimeStatus(id: "rt") { ...k } b: runtimeStatus(id: "rt") { ...k } c: runtimeStatus(id: "rt") { ...k }
				d: runtimeStatus(id: "rt") { ...k } } fragment k on RuntimeStatus { ... on RuntimeStatus { runtimeConfiguration { kubeconfig } } }`,
			status: http.StatusOK, want: "the request costs more than 100. A kubeconfig costs 25",
		},
		"AliasedKubeconfigs": {
			reason: "Aliases within one runtime must not multiply kubeconfigs.",
			query:  `{ runtimeStatus(id: "rt") { runtimeConfiguration { a: kubeconfig b: kubeconfig c: kubeconfig d: kubeconfig } } }`,
			status: http.StatusOK, want: "the request costs more than 100",
		},
		"ManyMutations": {
			reason: "The number of mutations has a limit.",
			query:  "mutation {" + many(11, `a%d: deprovisionRuntime(id: "rt")`) + "}", status: http.StatusOK,
			want: "the request costs more than 100",
		},
		"ManyFeeds": {
			reason: "The number of requests for changes has a limit.",
			query:  "{" + many(5, `a%d: operationChanges { cursor }`) + "}", status: http.StatusOK, want: "the request costs more than 100",
		},
		"ManyRuntimes": {
			reason: "The number of database reads has a limit.",
			query:  "{" + many(101, `a%d: runtimeStatus(id: "rt") { hibernationStatus @skip(if: true) { hibernated } }`) + "}",
			status: http.StatusOK, want: "the request costs more than 100",
		},
		"Depth": {
			reason: "The depth of introspection has a limit.",
			query:  "{ __schema { types { " + strings.Repeat("ofType { ", 18) + "name" + strings.Repeat(" }", 21), status: http.StatusOK,
			want: "the request nests fields 21 levels deep, but at most 20 are allowed",
		},
		"FragmentBomb": {
			reason: "Fragments that double each other are counted without visiting each spread.",
			query:  bomb, status: http.StatusOK, want: "the request selects more than 1000 fields",
		},
		"Tokens": {
			reason: "The number of tokens has a limit, which is checked before parsing.",
			query:  "{" + strings.Repeat(" a", 20_000) + "}", status: http.StatusUnprocessableEntity, want: "exceeded token limit",
		},
		"Body": {
			reason: "The size of a body has a limit. The status is of HTTP, so that proxies understand it.",
			query:  strings.Repeat(" ", 1<<20), status: http.StatusRequestEntityTooLarge,
			want: `{"errors":[{"message":"the request is larger than 1024 KiB: reduce it`,
		},
	}

	server := startServer(t, runtimes{})

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			status, got := post(t, server, asTenant(tc.query))
			if status != tc.status || !strings.Contains(got, tc.want) || !strings.Contains(got, `"error_code":400`) {
				t.Errorf("%s\nwant %d with %s, got %d %.300s", tc.reason, tc.status, tc.want, status, got)
			}
		})
	}
}

func TestMalformedBody(t *testing.T) {
	t.Parallel()

	server := startServer(t, runtimes{})

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/graphql", strings.NewReader(`{"query": hunter2`))
	if err != nil {
		t.Fatal(err)
	}

	request.Header.Set("Content-Type", "application/json")

	status, got := send(t, request)
	if status != http.StatusBadRequest || !strings.Contains(got, "could not be decoded") || strings.Contains(got, "hunter2") {
		t.Errorf("a body that is not JSON must be rejected and not quoted: got %d %s", status, got)
	}
}

// TestContentTypes checks that the server accepts only JSON. Browsers send some other content types across origins without a
// preflight request.
func TestContentTypes(t *testing.T) {
	t.Parallel()

	for media, want := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true,
		"text/plain": false, "application/x-www-form-urlencoded": false, "multipart/form-data; boundary=x": false, "application/graphql": false, "": false,
	} {
		executed := false
		server := startServer(t, runtimes{operationStatus: func(orders.Caller, string) (operation.Status, error) {
			executed = true

			return operation.Status{}, nil
		}})

		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/graphql",
			strings.NewReader(`{"query": "{ runtimeOperationStatus(id: \"op\") { id } }"}`))
		if err != nil {
			t.Fatal(err)
		}

		request.Header.Set("tenant", "acme")

		if media != "" {
			request.Header.Set("Content-Type", media)
		}

		status, got := send(t, request)
		if executed != want || want != (status == http.StatusOK) || !want && !strings.Contains(got, `"errors"`) {
			t.Errorf("%q: executed %t, want %t: %d %s", media, executed, want, status, got)
		}
	}
}

func TestGet(t *testing.T) {
	t.Parallel()

	server := startServer(t, runtimes{
		operationStatus: func(_ orders.Caller, id string) (operation.Status, error) {
			return operation.Status{ID: id}, nil
		},
	})

	cases := map[string]struct {
		reason string
		path   string
		status int
		want   string
	}{
		"Query": {
			reason: "Queries may be sent with GET.",
			path:   "/graphql?query=" + url.QueryEscape(askOperation), status: http.StatusOK, want: `{"data":{"result":{"id":"op"}}}`,
		},
		"Mutation": {
			reason: "Mutations need POST: a link must not change anything.",
			path:   "/graphql?query=" + url.QueryEscape(`mutation { deprovisionRuntime(id: "rt") }`), status: http.StatusNotAcceptable,
			want: "GET requests only allow query operations",
		},
		"Playground": {
			reason: "The playground calls the API at the configured path.",
			path:   "/", status: http.StatusOK, want: "/behind/a/proxy/graphql",
		},
		"Introspection": {
			reason: "The playground's introspection passes all limits.",
			path:   "/graphql?query=" + url.QueryEscape(introspection.Query), status: http.StatusOK, want: `"name":"GardenerConfigInput"`,
		},
		"Elsewhere": {
			reason: "Other paths are not found.",
			path:   "/elsewhere", status: http.StatusNotFound, want: "404",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+tc.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}

			request.Header.Set("Tenant", "acme")

			status, got := send(t, request)
			if status != tc.status || !strings.Contains(got, tc.want) || strings.Contains(got, `"error_code"`) {
				t.Errorf("%s\nwant %d with %s, got %d %.300s", tc.reason, tc.status, tc.want, status, got)
			}
		})
	}
}

// startLoggedServer starts a server that logs to the buffer. Its query runtimeOperationStatus fails with the error that fail
// returns.
func startLoggedServer(t *testing.T, log *bytes.Buffer, fail func() error) *httptest.Server {
	t.Helper()

	logger := logrus.New()
	logger.SetOutput(log)

	server := httptest.NewServer(as(auth.RoleOSB, graph.NewHandler(graph.Options{
		Service: runtimes{operationStatus: func(orders.Caller, string) (operation.Status, error) {
			return operation.Status{}, fail()
		}},
		Log: logger, Endpoint: "graphql", PlaygroundEndpoint: "/graphql",
	})))
	t.Cleanup(server.Close)

	return server
}
