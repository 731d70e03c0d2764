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
			reason: "A mistake of the client is told as it is, percent signs included.",
			err:    failure.New(failure.Invalid, "%s", "100% wrong: %s %d %!"),
			want:   fmt.Sprintf(form, "100% wrong: %s %d %!", 400, "provisioner", "err_provisioner_bad_request"),
			logged: "100% wrong",
		},
		"Denied": {
			reason: "The kind decides on the code, reason and component are handed on.",
			err:    failure.New(failure.Denied, "not allowed").WithReason("Forbidden", failure.ComponentGardenerClient),
			want:   fmt.Sprintf(form, "not allowed", 403, "k8s client - gardener", "Forbidden"),
		},
		"Wrapped": {
			reason: "What was added around an error, and its cause, are for the log.",
			err:    fmt.Errorf("load operation: %w", failure.Wrap(failure.Transient, secret, "the database does not answer")),
			want:   fmt.Sprintf(form, "the database does not answer", 503, "provisioner", "err_provisioner_internal"),
			logged: "hunter2",
		},
		"Internal": {
			reason: "The text of an internal error is for the log.",
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
		t.Errorf("a panic is an internal error and stays in the log: got %d %s", status, got)
	}

	for _, want := range []string{"hunter2", "handler_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("want %q in the log, got %s", want, log.String())
		}
	}
}

// TestRequestThatIsBrokenStaysOutOfTheLog: messages about a request repeat parts of it, which may be secret.
func TestRequestThatIsBrokenStaysOutOfTheLog(t *testing.T) {
	t.Parallel()

	for reason, entry := range map[string]string{
		"a value that is no text":        `{key: "password", value: 4711, secret: true}`,
		"a colon that is missing":        `{key: "password", value "4711", secret: true}`,
		"a field that there is not":      `{key: "password", value: "4711", secret: true, values: "4711"}`,
		"a value in the place of a type": `{key: "password", value: "4711", secret: "4711"}`,
	} {
		var log bytes.Buffer

		server := startLoggedServer(t, &log, func() error { return nil })
		query := `mutation { upgradeRuntime(id: "rt", config: {kymaConfig: {version: "1", components: [], configuration: [` + entry + `]}}) { id } }`

		status, got := post(t, server, asTenant(query))
		if status != http.StatusUnprocessableEntity || !strings.Contains(got, `"error_code":400`) {
			t.Errorf("%s: got %d %s", reason, status, got)
		}

		if !strings.Contains(log.String(), "GraphQL") || strings.Contains(log.String(), "4711") {
			t.Errorf("%s: the log says %s", reason, log.String())
		}
	}
}

func TestRequestsRefused(t *testing.T) {
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
			reason: "What is no GraphQL has the status that the former Provisioner gave it, and a code besides.",
			query:  "{", status: http.StatusUnprocessableEntity, want: `"error_code":400`,
		},
		"UnknownField": {
			reason: "So has a field that the schema has not.",
			query:  "{ nothing }", status: http.StatusUnprocessableEntity, want: `Cannot query field \"nothing\" on type \"Query\"`,
		},
		"Enum": {
			reason: "A value that an enum has not is the client's mistake.",
			query: strings.Replace(provision, "{\n\truntimeInput",
				`{kymaConfig: {version: "1", profile: Huge, components: []}, runtimeInput`, 1),
			status: http.StatusUnprocessableEntity, want: `Value \"Huge\" does not exist`,
		},
		"Labels": {
			reason: "Labels are an object.",
			query:  strings.Replace(provision, `{stage: "dev", weight: 1.5}`, `"dev"`, 1),
			status: http.StatusOK, want: `"labels must be a JSON object, not string"`,
		},
		"ManyFields": {
			reason: "The number of fields has a limit.",
			query:  "{" + strings.Repeat(strings.Trim(askOperation, "{}"), 501) + "}", status: http.StatusOK,
			want: "the request selects more than 1000 fields",
		},
		"ManyKubeconfigs": {
			reason: "Aliases could have Gardener sign kubeconfigs without end.",
			query: `{ a: runtimeStatus(id: "rt") { ...k } b: runtimeStatus(id: "rt") { ...k } c: runtimeStatus(id: "rt") { ...k }
				d: runtimeStatus(id: "rt") { ...k } } fragment k on RuntimeStatus { ... on RuntimeStatus { runtimeConfiguration { kubeconfig } } }`,
			status: http.StatusOK, want: "the request costs more than 100: a kubeconfig costs 25",
		},
		"AliasedKubeconfigs": {
			reason: "So could aliases within one runtime.",
			query:  `{ runtimeStatus(id: "rt") { runtimeConfiguration { a: kubeconfig b: kubeconfig c: kubeconfig d: kubeconfig } } }`,
			status: http.StatusOK, want: "the request costs more than 100",
		},
		"ManyMutations": {
			reason: "A request does not order a fleet.",
			query:  "mutation {" + many(11, `a%d: deprovisionRuntime(id: "rt")`) + "}", status: http.StatusOK,
			want: "the request costs more than 100",
		},
		"ManyFeeds": {
			reason: "Nor does it wait in many places.",
			query:  "{" + many(5, `a%d: operationChanges { cursor }`) + "}", status: http.StatusOK, want: "the request costs more than 100",
		},
		"ManyRuntimes": {
			reason: "What is read from the database is not free either.",
			query:  "{" + many(101, `a%d: runtimeStatus(id: "rt") { hibernationStatus @skip(if: true) { hibernated } }`) + "}",
			status: http.StatusOK, want: "the request costs more than 100",
		},
		"Depth": {
			reason: "Introspection cannot be nested without end.",
			query:  "{ __schema { types { " + strings.Repeat("ofType { ", 18) + "name" + strings.Repeat(" }", 21), status: http.StatusOK,
			want: "the request nests fields 21 deep, at most 20 are allowed",
		},
		"FragmentBomb": {
			reason: "Fragments that double each other are counted without walking through all of them.",
			query:  bomb, status: http.StatusOK, want: "the request selects more than 1000 fields",
		},
		"Tokens": {
			reason: "A query has a limit even before it is understood.",
			query:  "{" + strings.Repeat(" a", 20_000) + "}", status: http.StatusUnprocessableEntity, want: "exceeded token limit",
		},
		"Body": {
			reason: "A request has a limit in bytes, which is HTTP's matter: programs that know no GraphQL understand it too.",
			query:  strings.Repeat(" ", 1<<20), status: http.StatusRequestEntityTooLarge,
			want: `{"errors":[{"message":"the request has more than 1048576 bytes: send less`,
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
		t.Errorf("a body that is no JSON is refused and not repeated: got %d %s", status, got)
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
			reason: "Mutations may not: a link must not change anything.",
			path:   "/graphql?query=" + url.QueryEscape(`mutation { deprovisionRuntime(id: "rt") }`), status: http.StatusNotAcceptable,
			want: "GET requests only allow query operations",
		},
		"Playground": {
			reason: "The playground calls the API where the browser finds it.",
			path:   "/", status: http.StatusOK, want: "/behind/a/proxy/graphql",
		},
		"Introspection": {
			reason: "Introspection, which the playground needs, passes all limits.",
			path:   "/graphql?query=" + url.QueryEscape(introspection.Query), status: http.StatusOK, want: `"name":"GardenerConfigInput"`,
		},
		"Elsewhere": {
			reason: "There is nothing else.",
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

// startLoggedServer starts a server that logs into the buffer and whose operations cannot be read.
func startLoggedServer(t *testing.T, log *bytes.Buffer, fail func() error) *httptest.Server {
	t.Helper()

	logger := logrus.New()
	logger.SetOutput(log)

	server := httptest.NewServer(graph.NewHandler(graph.Options{
		Service: runtimes{operationStatus: func(orders.Caller, string) (operation.Status, error) {
			return operation.Status{}, fail()
		}},
		Log: logger, Endpoint: "graphql", PlaygroundEndpoint: "/graphql",
	}))
	t.Cleanup(server.Close)

	return server
}
