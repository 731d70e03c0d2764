package provisionerclient_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// playStatuses starts a fake Provisioner that validates requests against the schema in the file. A response contains the data of
// each requested operation and the errors in failures, where ALIAS:ID stands for the alias of the operation with the ID. The
// second result contains the headers of all requests.
func playStatuses(t *testing.T, schemaFile string, data map[string]string, failures string) (*provisionerclient.Client, *[]http.Header) {
	t.Helper()

	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}

	schema, err := gqlparser.LoadSchema(&ast.Source{Name: schemaFile, Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}

	headers := new([]http.Header)

	return clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		var sent request
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Errorf("the request is not JSON: %v", err)
		}

		*headers = append(*headers, r.Header)

		document, problems := gqlparser.LoadQueryWithRules(schema, sent.Query, rules.NewDefaultRules())
		if problems != nil {
			t.Errorf("%s rejects the request: %v\n%s", schemaFile, problems, sent.Query)

			return
		}

		fields, replaced := []string{}, failures

		for _, selection := range document.Operations[0].SelectionSet {
			field := selection.(*ast.Field)
			id := field.ArgumentMap(sent.Variables)["id"].(string)
			fields = append(fields, fmt.Sprintf("%q: %s", field.Alias, data[id]))
			replaced = strings.ReplaceAll(replaced, "ALIAS:"+id, field.Alias)
		}

		_, _ = io.WriteString(w, `{"data": {`+strings.Join(fields, ", ")+`}, "errors": [`+replaced+`]}`)
	}), headers
}

func TestOperationStatuses(t *testing.T) {
	t.Parallel()

	const (
		could = "the Provisioner could not report the state of the operation: "
		known = `{"id": "known", "operation": "Provision", "state": "Succeeded", "message": "m", "runtimeID": "r", "lastError": null}`
	)

	for _, schema := range []string{"../../../provisioner/schema.graphql", "../../../test/kymacompat/provisioner/schema.graphql"} {
		client, headers := playStatuses(t, schema, map[string]string{
			"known": known, "unknown": "null", "broken": "null", "both": strings.ReplaceAll(known, "known", "both"), "none": "null",
		}, `{"message": "no rows", "path": ["ALIAS:unknown"], "extensions": {"error_code": 2, "error_reason": "err_db_not_found"}},
			{"message": "no state", "path": ["ALIAS:broken", "state"], "extensions": {"error_code": 400}},
			{"message": "another", "path": ["ALIAS:broken", "lastError", 0]},
			{"message": "half", "path": ["ALIAS:both", "lastError"], "extensions": 7},
			{"message": "elsewhere", "path": ["other"]}`)

		got := client.OperationStatuses(t.Context(), "acme", []string{"known", "unknown", "broken", "both", "none"})
		want := map[string]string{
			"unknown": "not_found: " + could + "the Provisioner has no such object: no rows",
			"broken":  "permanent: the Provisioner refused to report the state of the operation: no state",
			"both":    "transient: the Provisioner could not report the state of the operation: half",
			"none":    "transient: " + could + "it did not return the operation",
		}

		succeeded := provisionerclient.Operation{ID: "known", RuntimeID: "r", Type: "Provision", State: provisionerclient.StateSucceeded, Message: "m"}
		if diff := cmp.Diff(provisionerclient.OperationResult{Operation: succeeded}, got["known"]); diff != "" || len(got) != len(want)+1 {
			t.Errorf("%d results, a known operation: -want +got:\n%s", len(got), diff)
		}

		for id, text := range want {
			if err := failure.Of(got[id].Err); text != fmt.Sprintf("%s: %s", err.Kind, err.ForOperators()) ||
				!strings.HasPrefix(got[id].Err.Error(), "reading operation "+id+": ") {
				t.Errorf("operation %s: got %s, %v, want %s", id, err.Kind, got[id].Err, text)
			}
		}

		if len(*headers) != 1 || (*headers)[0].Get("Tenant") != "acme" || (*headers)[0].Get("Idempotency-Key") != "" {
			t.Errorf("headers of the requests: %v", *headers)
		}
	}
}

func TestMostOperationStatuses(t *testing.T) {
	t.Parallel()

	data := map[string]string{}

	var ids []string

	for i := range provisionerclient.MaxStatuses {
		id := fmt.Sprintf(`%d "null" {}`, i)
		ids = append(ids, id)
		data[id] = fmt.Sprintf(`{"id": %q, "operation": "Provision", "state": "InProgress"}`, id)
	}

	client, headers := playStatuses(t, "../../../provisioner/schema.graphql", data, "")

	for id, result := range client.OperationStatuses(t.Context(), "acme", ids) {
		if result.Err != nil || result.Operation.ID != id {
			t.Errorf("operation %s: got %+v, %v", id, result.Operation, result.Err)
		}
	}

	if len(*headers) != 1 {
		t.Errorf("%d requests", len(*headers))
	}
}

// TestOperationStatusesOfOne checks that OperationStatuses sends the same request for a single operation as OperationStatus.
func TestOperationStatusesOfOne(t *testing.T) {
	t.Parallel()

	client, got := playProvisioner(t, http.StatusOK, operationAnswer)

	results := client.OperationStatuses(t.Context(), "acme", []string{"op-1"})
	if result := results["op-1"]; len(results) != 1 || result.Err != nil || result.Operation.ID != "op-1" {
		t.Errorf("got %+v", results)
	}

	if !strings.Contains(got.Query, "result: runtimeOperationStatus(id: $id)") {
		t.Errorf("sent %s", got.Query)
	}
}

// TestFailedRequestForSeveral checks that, if a request for several operations fails, each operation has the same error as after
// a failed request for this operation alone.
func TestFailedRequestForSeveral(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		status int
		answer string
	}{
		"Unavailable": {"a proxy answers in place of the Provisioner", http.StatusServiceUnavailable, "upstream connect error"},
		"Denied":      {"a proxy rejects both", http.StatusForbidden, "RBAC: access denied"},
		"NotGraphQL":  {"something else answers", http.StatusOK, "<html>"},
		"NoData":      {"neither data nor errors", http.StatusOK, `{}`},
		"TooLong":     {"the length of a response is limited", http.StatusOK, `{"data": "` + strings.Repeat("a", 8<<20)},
		"OtherTypes":  {"data of a different type", http.StatusOK, `{"data": {"a0": {"id": 7}, "result": {"id": 7}}}`},
		"Internal": {
			"the whole request failed", http.StatusOK,
			`{"data": null, "errors": [{"message": "no database", "extensions": {"error_code": 500, "error_reason": "err_db_internal"}}]}`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			client, _ := playProvisioner(t, tc.status, tc.answer)
			_, err := client.OperationStatus(t.Context(), "acme", "b")
			want := failure.Of(err)

			results := client.OperationStatuses(t.Context(), "acme", []string{"a", "b"})
			if len(results) != 2 {
				t.Errorf("%s: got %d results", tc.reason, len(results))
			}

			for id, result := range results {
				got := failure.Of(result.Err)
				if got.Kind != failure.Transient || got.Kind != want.Kind || got.Text != want.Text || got.Reason != want.Reason || got.Component != want.Component {
					t.Errorf("%s: operation %s: got %s %v, want %s %v", tc.reason, id, got.Kind, got, want.Kind, want)
				}

				if errors.Is(result.Err, provisionerclient.ErrTooManyOperations) {
					t.Errorf("%s: the number of operations is not to blame: %v", tc.reason, result.Err)
				}
			}
		})
	}
}

func TestTimeoutOfARequestForSeveral(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, provisionerclient.Options{
			URL: "http://provisioner/graphql", Timeout: time.Minute, HTTPClient: &http.Client{Transport: silent{}},
		})

		began := time.Now()

		for id, result := range client.OperationStatuses(t.Context(), "acme", []string{"a", "b"}) {
			if got := failure.Of(result.Err); got.Text != "the Provisioner did not respond within 1m0s" || got.Reason != failure.ReasonTimeout {
				t.Errorf("operation %s: got %v", id, result.Err)
			}
		}

		if took := time.Since(began); took != time.Minute {
			t.Errorf("the request took %s", took)
		}
	})
}

// TestRejectedNumberOfOperations checks that the error is transient and wraps ErrTooManyOperations, because a request for fewer
// operations may succeed.
func TestRejectedNumberOfOperations(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		status int
		answer string
	}{
		"Aliases": {
			"a GraphQL server limits the aliases of a request", http.StatusUnprocessableEntity,
			`{"errors": [{"message": "Aliases limit of 15 exceeded", "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"}}]}`,
		},
		"AliasesWithStatusOK": {
			"the same with a different status", http.StatusOK,
			`{"data": null, "errors": [{"message": "Aliases limit of 15 exceeded", "extensions": {"error_code": 400}}]}`,
		},
		"BadRequest": {"a proxy inspects requests", http.StatusBadRequest, "blocked"},
		"Size":       {"a proxy limits the size of requests", http.StatusRequestEntityTooLarge, "<html>413"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			client, _ := playProvisioner(t, tc.status, tc.answer)

			for id, result := range client.OperationStatuses(t.Context(), "acme", []string{"a", "b"}) {
				if !errors.Is(result.Err, provisionerclient.ErrTooManyOperations) || !failure.Is(result.Err, failure.Transient) {
					t.Errorf("%s: operation %s: got %v", tc.reason, id, result.Err)
				}
			}
		})
	}
}

// TestOneFailureForTheCircuitBreaker checks that a failed request for several operations counts as one failure.
func TestOneFailureForTheCircuitBreaker(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "away", http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)

	system := upstream.New(upstream.Options{Name: "provisioner", Title: "the Provisioner", Component: "provisioner", Calls: 1})
	client := newClient(t, provisionerclient.Options{URL: server.URL, WrapTransport: system.Transport})

	client.OperationStatuses(t.Context(), "acme", []string{"a", "b", "c", "d", "e", "f"})

	if status := system.Status(); status.Failures != 1 || status.State != upstream.Closed {
		t.Errorf("the circuit breaker is %s after %d failures", status.State, status.Failures)
	}
}
