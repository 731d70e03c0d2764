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

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

// runtimes is a graph.Service whose methods call functions that the test sets. Methods without a function panic. Like orders.Service,
// Provision validates an order unless its key is known.
type runtimes struct {
	graph.Service

	// known maps the idempotency keys of earlier orders to their operations.
	known           map[string]operation.Status
	provision       func(orders.Caller, spec.Runtime) (operation.Status, error)
	upgradeShoot    func(orders.Caller, string, spec.Upgrade) (operation.Status, error)
	upgradeRuntime  func(orders.Caller, string, spec.KymaUpgrade) (operation.Status, error)
	rollBack        func(orders.Caller, string) (operation.Status, error)
	hibernate       func(orders.Caller, string) (operation.Status, error)
	wakeUp          func(orders.Caller, string) (operation.Status, error)
	reconnectAgent  func(orders.Caller, string) (string, error)
	deprovision     func(orders.Caller, string) (string, error)
	runtimeStatus   func(orders.Caller, string, orders.RuntimeFields) (orders.RuntimeStatus, error)
	operationStatus func(orders.Caller, string) (operation.Status, error)
	operationErrors func(string) ([]string, error)
	changes         func(context.Context, string, time.Duration) (string, []orders.Change, error)
	listRuntimes    func(orders.RuntimeFilter, orders.Page) (orders.RuntimeList, error)
	adoptShoot      func(orders.Caller, orders.Adoption) (orders.Adopted, error)
	listOperations  func(orders.OperationFilter, orders.Page) (orders.OperationList, error)
}

func (r runtimes) Provision(
	_ context.Context, caller orders.Caller, input spec.Runtime,
) (operation.Status, error) {
	if status, found := r.known[caller.IdempotencyKey]; found {
		return status, nil
	}

	if err := validation.Provision(input, validation.Rules{Project: "kyma"}); err != nil {
		return operation.Status{}, err
	}

	return r.provision(caller, input)
}

func (r runtimes) UpgradeShoot(
	_ context.Context, caller orders.Caller, runtimeID string, upgrade spec.Upgrade,
) (operation.Status, error) {
	return r.upgradeShoot(caller, runtimeID, upgrade)
}

func (r runtimes) UpgradeRuntime(
	_ context.Context, caller orders.Caller, runtimeID string, upgrade spec.KymaUpgrade,
) (operation.Status, error) {
	return r.upgradeRuntime(caller, runtimeID, upgrade)
}

func (r runtimes) RollBackUpgrade(_ context.Context, caller orders.Caller, runtimeID string, _ *string) (operation.Status, error) {
	return r.rollBack(caller, runtimeID)
}

func (r runtimes) Hibernate(_ context.Context, caller orders.Caller, runtimeID string) (operation.Status, error) {
	return r.hibernate(caller, runtimeID)
}

func (r runtimes) WakeUp(_ context.Context, caller orders.Caller, runtimeID string) (operation.Status, error) {
	return r.wakeUp(caller, runtimeID)
}

func (r runtimes) ReconnectAgent(_ context.Context, caller orders.Caller, runtimeID string) (string, error) {
	return r.reconnectAgent(caller, runtimeID)
}

func (r runtimes) Deprovision(_ context.Context, caller orders.Caller, runtimeID string) (string, error) {
	return r.deprovision(caller, runtimeID)
}

func (r runtimes) AdoptShoot(_ context.Context, caller orders.Caller, adoption orders.Adoption) (orders.Adopted, error) {
	return r.adoptShoot(caller, adoption)
}

func (r runtimes) RuntimeStatus(
	_ context.Context, caller orders.Caller, runtimeID string, want orders.RuntimeFields,
) (orders.RuntimeStatus, error) {
	return r.runtimeStatus(caller, runtimeID, want)
}

func (r runtimes) OperationStatus(_ context.Context, caller orders.Caller, operationID string) (operation.Status, error) {
	return r.operationStatus(caller, operationID)
}

func (r runtimes) OperationErrors(_ context.Context, operationID string) ([]string, error) {
	return r.operationErrors(operationID)
}

func (r runtimes) Changes(
	ctx context.Context, after string, wait time.Duration,
) (string, []orders.Change, error) {
	return r.changes(ctx, after, wait)
}

func (r runtimes) ListRuntimes(_ context.Context, filter orders.RuntimeFilter, page orders.Page) (orders.RuntimeList, error) {
	return r.listRuntimes(filter, page)
}

func (r runtimes) ListOperations(_ context.Context, filter orders.OperationFilter, page orders.Page) (orders.OperationList, error) {
	return r.listOperations(filter, page)
}

func startServer(t *testing.T, runtimes graph.Service) *httptest.Server {
	t.Helper()

	server := httptest.NewServer(as(auth.RoleOSB, graph.NewHandler(graph.Options{
		Service: runtimes, Log: logging.Discard(),
		Endpoint: "/graphql", PlaygroundEndpoint: "/behind/a/proxy/graphql",
	})))
	t.Cleanup(server.Close)

	return server
}

// as returns a handler that passes requests to api on behalf of a client with the given role.
func as(role auth.Role, api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(auth.NewContext(r.Context(), auth.Identity{Name: "client", Roles: []auth.Role{role}})))
	})
}

// exchange is a GraphQL request with its HTTP headers.
type exchange struct {
	query     string
	variables map[string]any
	headers   map[string]string
}

// asTenant returns a request on behalf of the tenant acme.
func asTenant(query string) exchange {
	return exchange{query: query, headers: map[string]string{"tenant": "acme"}}
}

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
