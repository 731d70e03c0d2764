package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

// runtimes is a graph.Runtimes that does what its functions do.
type runtimes struct {
	// known are the operations that keys stand for.
	known           map[string]model.OperationStatus
	provision       func(graph.Caller, model.ProvisionRuntimeInput) (model.OperationStatus, error)
	upgradeShoot    func(graph.Caller, string, model.UpgradeShootInput) (model.OperationStatus, error)
	upgradeRuntime  func(graph.Caller, string, model.UpgradeRuntimeInput) (model.OperationStatus, error)
	rollBack        func(graph.Caller, string) (model.OperationStatus, error)
	hibernate       func(graph.Caller, string) (model.OperationStatus, error)
	wakeUp          func(graph.Caller, string) (model.OperationStatus, error)
	reconnectAgent  func(graph.Caller, string) (string, error)
	deprovision     func(graph.Caller, string) (string, error)
	runtimeStatus   func(graph.Caller, string, graph.RuntimeFields) (model.RuntimeStatus, error)
	operationStatus func(graph.Caller, string) (model.OperationStatus, error)
	changes         func(context.Context, string, time.Duration) (string, []model.OperationChange, error)
}

var _ graph.Runtimes = runtimes{}

func (r runtimes) Known(_ context.Context, caller graph.Caller) (model.OperationStatus, bool, error) {
	status, found := r.known[caller.IdempotencyKey]

	return status, found, nil
}

func (r runtimes) Provision(
	_ context.Context, caller graph.Caller, input model.ProvisionRuntimeInput,
) (model.OperationStatus, error) {
	return r.provision(caller, input)
}

func (r runtimes) UpgradeShoot(
	_ context.Context, caller graph.Caller, runtimeID string, upgrade model.UpgradeShootInput,
) (model.OperationStatus, error) {
	return r.upgradeShoot(caller, runtimeID, upgrade)
}

func (r runtimes) UpgradeRuntime(
	_ context.Context, caller graph.Caller, runtimeID string, upgrade model.UpgradeRuntimeInput,
) (model.OperationStatus, error) {
	return r.upgradeRuntime(caller, runtimeID, upgrade)
}

func (r runtimes) RollBackUpgrade(_ context.Context, caller graph.Caller, runtimeID string) (model.OperationStatus, error) {
	return r.rollBack(caller, runtimeID)
}

func (r runtimes) Hibernate(_ context.Context, caller graph.Caller, runtimeID string) (model.OperationStatus, error) {
	return r.hibernate(caller, runtimeID)
}

func (r runtimes) WakeUp(_ context.Context, caller graph.Caller, runtimeID string) (model.OperationStatus, error) {
	return r.wakeUp(caller, runtimeID)
}

func (r runtimes) ReconnectAgent(_ context.Context, caller graph.Caller, runtimeID string) (string, error) {
	return r.reconnectAgent(caller, runtimeID)
}

func (r runtimes) Deprovision(_ context.Context, caller graph.Caller, runtimeID string) (string, error) {
	return r.deprovision(caller, runtimeID)
}

func (r runtimes) RuntimeStatus(
	_ context.Context, caller graph.Caller, runtimeID string, want graph.RuntimeFields,
) (model.RuntimeStatus, error) {
	return r.runtimeStatus(caller, runtimeID, want)
}

func (r runtimes) OperationStatus(_ context.Context, caller graph.Caller, operationID string) (model.OperationStatus, error) {
	return r.operationStatus(caller, operationID)
}

func (r runtimes) Changes(
	ctx context.Context, after string, wait time.Duration,
) (string, []model.OperationChange, error) {
	return r.changes(ctx, after, wait)
}

// startServer starts a server before the runtimes and returns its address.
func startServer(t *testing.T, runtimes graph.Runtimes) *httptest.Server {
	t.Helper()

	server := httptest.NewServer(graph.NewHandler(graph.Options{
		Runtimes: runtimes, Rules: validation.Rules{Project: "kyma"}, Log: logging.Discard(),
		Endpoint: "/graphql", PlaygroundEndpoint: "/behind/a/proxy/graphql",
	}))
	t.Cleanup(server.Close)

	return server
}

// exchange is a GraphQL request with its headers.
type exchange struct {
	query     string
	variables map[string]any
	headers   map[string]string
}

// asTenant returns a request of tenant acme.
func asTenant(query string) exchange {
	return exchange{query: query, headers: map[string]string{"tenant": "acme"}}
}

// post sends the request and returns the answer with its numbers as they came.
func post(t *testing.T, server *httptest.Server, request exchange) (status int, body string) {
	t.Helper()

	text, err := json.Marshal(map[string]any{"query": request.query, "variables": request.variables})
	if err != nil {
		t.Fatal(err)
	}

	httpRequest, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/graphql", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}

	httpRequest.Header.Set("Content-Type", "application/json")

	for name, value := range request.headers {
		httpRequest.Header.Set(name, value)
	}

	return send(t, httpRequest)
}

func send(t *testing.T, request *http.Request) (status int, body string) {
	t.Helper()

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}

	return response.StatusCode, string(text)
}
