package graph_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
)

// many returns a selection that repeats a field under different aliases.
func many(count int, field string) string {
	var fields strings.Builder
	for i := range count {
		fmt.Fprintf(&fields, field+"\n", i)
	}

	return fields.String()
}

// TestMaximumCost checks that a request of exactly the maximum cost is accepted.
func TestMaximumCost(t *testing.T) {
	t.Parallel()

	server := startServer(t, runtimes{operationStatus: func(_ orders.Caller, id string) (operation.Status, error) {
		return operation.Status{ID: id}, nil
	}})

	if _, got := post(t, server, asTenant("{"+many(100, `a%d: runtimeOperationStatus(id: "op") { id }`)+"}")); strings.Contains(got, "errors") {
		t.Errorf("a hundred operations must be allowed: %.300s", got)
	}
}

// TestBatch checks that the server rejects an array of requests. Some other servers support such batches.
func TestBatch(t *testing.T) {
	t.Parallel()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, startServer(t, runtimes{}).URL+"/graphql",
		strings.NewReader(`[{"query": "{ __typename }"}, {"query": "{ __typename }"}]`))
	if err != nil {
		t.Fatal(err)
	}

	request.Header.Set("Content-Type", "application/json")

	if status, got := send(t, request); status != http.StatusBadRequest || !strings.Contains(got, `"error_code":400`) {
		t.Errorf("a batch would bypass the limits of a request: got %d %s", status, got)
	}
}
