package graph_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// maxAnswer is the maximum size of the response to a rejected request, in bytes.
const maxAnswer = 64 << 10

// hostileQueries returns requests that are cheap to send and were expensive to reject.
func hostileQueries() map[string]string {
	long := strings.Repeat("x", 100_000)

	return map[string]string{
		"SameField":          "{" + strings.Repeat("__typename ", 9000) + "}",
		"SameFieldAllowed":   "{" + strings.Repeat("__typename ", 998) + "nothing }",
		"SameFieldNested":    "{ __schema {" + strings.Repeat("types { name } ", 490) + "} nothing }",
		"UnknownDirectives":  "{ __typename " + strings.Repeat("@a ", 4900) + "}",
		"AllowedDirectives":  "{ __typename " + strings.Repeat("@a ", 199) + "}",
		"UnknownFields":      "{" + many(900, "a%d: runtimeStatuss") + "}",
		"UnknownArguments":   "{ runtimeStatus(" + many(3000, "a%d: 1") + ") { __typename } }",
		"UnknownInputs":      "mutation { provisionRuntime(config: {" + many(3000, "a%d: 1") + "}) { id } }",
		"UnknownFragments":   "{" + many(900, "...f%d") + "}",
		"UnusedFragments":    "{ __typename }" + many(200, " fragment f%d on Query { __typename }"),
		"UnusedVariables":    "query q(" + many(200, "$v%d: String") + ") { __typename }",
		"VariablesTimesUses": "query q(" + many(200, "$v%d: String!") + ") {" + many(900, "a%d: runtimeStatus(id: $v199) { nothing }") + "}",
		"ManyOperations":     many(2000, "query q%d { __typename }"),
		"SameOperations":     strings.Repeat("query q { __typename } ", 200),
		"DeepList":           "{ runtimeStatus(id: " + strings.Repeat("[", 4900) + strings.Repeat("]", 4900) + ") { __typename } }",
		"DeepObject":         "{ runtimeStatus(id: " + strings.Repeat("{a:", 3000) + "1" + strings.Repeat("}", 3000) + ") { __typename } }",
		"DeepSelection":      strings.Repeat("{ a ", 4000) + strings.Repeat("}", 4000),
		"DeepFragments":      "{ ...f0 }" + many(100, " fragment f%[1]d on Query { ... on Query { ...f%[1]d1 } }"),
		"Cycle":              "{ ...f } fragment f on Query { a: runtimeStatus(id: \"r\") { ...g } } fragment g on RuntimeStatus { lastOperationStatus { ...f } }",
		"Doubling":           "{ ...f0 }" + doubling(100),
		"LongAlias":          "{ " + long + ": nothing }",
		"LongField":          "{ " + long + " }",
		"LongOperation":      "query " + long + " { nothing }",
		"LongEnum":           "mutation { provisionRuntime(config: {kymaConfig: {profile: " + long + "}}) { id } }",
		"LongID":             `{ runtimeStatus(id: "` + long + `") { __typename } }`,
		"LongIDs":            `{` + many(100, `a%d: runtimeOperationStatus(id: "`+strings.Repeat(`\"`, 120)+`") { id }`) + `}`,
		"LongAliases":        `{` + many(100, strings.Repeat("a", 60)+`%d: runtimeOperationStatus(id: "`+strings.Repeat("i", 255)+`") { id }`) + `}`,
		"InvisibleID":        `{ runtimeStatus(id: "a\u200bb") { __typename } }`,
		"LongMutationID":     `mutation { deprovisionRuntime(id: "` + long + `") }`,
		"LongFilter":         `{ runtimes(filter: {id: "` + long + `", region: "\u0000"}) { totalCount } }`,
		"LongCursor":         `{ operationChanges(after: "` + long + `") { cursor } }`,
		"HugeNumber":         `{ runtimes(first: 1e999000) { totalCount } }`,
		"Comments":           strings.Repeat("#\n", 40_000) + "{ nothing }",
		"NotGraphQL":         long,
		"Punctuation":        strings.Repeat("!", 100_000),
	}
}

// doubling returns a chain of fragments that each spread the next one twice.
func doubling(count int) string {
	var fragments strings.Builder
	for i := range count {
		fmt.Fprintf(&fragments, " fragment f%d on Query { ...f%d ...f%d }", i, i+1, i+1)
	}

	return fragments.String()
}

// strict is a service whose queries find nothing. Its mutations fail the test.
func strict(t testing.TB) runtimes {
	t.Helper()

	return runtimes{
		operationStatus: func(_ orders.Caller, id string) (operation.Status, error) {
			return operation.Status{}, failure.New(failure.NotFound, "this tenant has no operation %q", id)
		},
		runtimeStatus: func(_ orders.Caller, id string, _ orders.RuntimeFields) (orders.RuntimeStatus, error) {
			return orders.RuntimeStatus{}, failure.New(failure.NotFound, "this tenant has no runtime %q", id)
		},
		deprovision: func(_ orders.Caller, id string) (string, error) {
			t.Errorf("runtime %.20q was deprovisioned", id)

			return "", nil
		},
		provision: func(orders.Caller, spec.Runtime) (operation.Status, error) {
			t.Error("a runtime was ordered")

			return operation.Status{}, nil
		},
	}
}

func TestHostileQueries(t *testing.T) {
	t.Parallel()

	server := startServer(t, strict(t))

	for name, query := range hostileQueries() {
		status, got := post(t, server, asTenant(query))

		if status >= http.StatusInternalServerError || !strings.Contains(got, `"errors"`) || strings.Contains(got, `"error_code":500`) {
			t.Errorf("%s: want a refusal, got %d %.300s", name, status, got)
		}

		if len(got) > maxAnswer {
			t.Errorf("%s: the response has %d bytes", name, len(got))
		}

		for _, message := range messages(t, got) {
			if len(message) > 350 {
				t.Errorf("%s: a message has %d bytes: %.400s", name, len(message), message)
			}
		}
	}
}

// messages returns the messages of the errors in a response.
func messages(t *testing.T, body string) []string {
	t.Helper()

	var response struct {
		Errors []struct{ Message string }
	}

	if err := json.Unmarshal([]byte(body), &response); err != nil {
		t.Fatalf("%v: %.300s", err, body)
	}

	found := make([]string, 0, len(response.Errors))
	for _, problem := range response.Errors {
		found = append(found, problem.Message)
	}

	return found
}

// TestErrorsAreBounded checks that the response to an invalid request has at most 20 errors, and says that there are more.
func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()

	_, got := post(t, startServer(t, runtimes{}), asTenant("{"+many(50, "nothing%d")+"}"))

	found := messages(t, got)
	if len(found) != 21 || found[20] != "there are more errors, which are not listed" {
		t.Errorf("want 20 errors and a hint, got %d: %.500s", len(found), got)
	}
}

// TestHostileVariables checks that variables are limited before they are decoded.
func TestHostileVariables(t *testing.T) {
	t.Parallel()

	server := startServer(t, strict(t))

	for name, variables := range map[string]string{
		"Zeros":     `{"config":[` + strings.TrimSuffix(strings.Repeat("0,", 400_000), ",") + `]}`,
		"Depth":     `{"config":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		"Exponent":  `{"config":{"clusterConfig":{"gardenerConfig":{"autoScalerMin":1e999000}}}}`,
		"Duplicate": `{"config":{"runtimeInput":{"name":"a","name":"b"}}}`,
		"LongName":  `{"config":{"` + strings.Repeat("n", 100_000) + `":1}}`,
	} {
		body := `{"query":"mutation($config: ProvisionRuntimeInput!) { provisionRuntime(config: $config) { id } }","variables":` + variables + `}`

		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/graphql", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}

		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Tenant", "acme")

		if status, got := send(t, request); status != http.StatusBadRequest || len(got) > 1000 || !strings.Contains(got, `"error_code":400`) {
			t.Errorf("%s: want 400, got %d %.300s", name, status, got)
		}
	}
}

// BenchmarkHostileQueries reports how long it takes to reject a hostile request, as a multiple of the time to decode a plain JSON
// body of the same size.
func BenchmarkHostileQueries(b *testing.B) {
	handler := graph.NewHandler(graph.Options{Service: strict(b), Log: logging.Discard(), Endpoint: "/graphql"})

	for name, query := range hostileQueries() {
		b.Run(name, func(b *testing.B) { benchmarkRequest(b, handler, query) })
	}
}
