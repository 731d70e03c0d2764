package provisionerclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

const (
	defaultTimeout = 120 * time.Second
	// feedMargin is added to the wait time of a request for changes. The sum is the timeout of the request.
	feedMargin = 10 * time.Second
	// maxFeedWait is the maximum wait for changes that a Provisioner accepts.
	maxFeedWait = 30 * time.Second
)

// ErrNoFeed is wrapped by the error of Changes if the Provisioner has no feed. The Kyma Provisioner has no
// feed, so its operations must be polled.
var ErrNoFeed = errors.New("the Provisioner has no feed of changed operations")

// ErrNotUnderstood is wrapped by the error for a request that does not match the Provisioner's schema. The same request keeps
// failing until the Provisioner is upgraded.
var ErrNotUnderstood = errors.New("the Provisioner does not understand the request")

// Options configures a client.
type Options struct {
	// URL is the address of the GraphQL API. It may contain a user and a password for HTTP Basic
	// authentication. Errors never quote the URL.
	URL string
	// Timeout limits each call except Changes; 0 means 120 s.
	Timeout time.Duration
	// HTTPClient sends the requests. Nil means a client that does not follow redirects, because a redirect could send requests
	// and credentials to another host.
	HTTPClient *http.Client
	// WrapTransport, if set, wraps the transport of all calls except Changes, which lasts much longer than the
	// other calls.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// Client calls one Provisioner. It is safe for concurrent use. A Client does not retry failed calls: the steps of the engine do
// so if the error is failure.Transient or failure.Waiting.
type Client struct {
	options Options
	// wrapped sends the requests of all methods except Changes.
	wrapped *http.Client
	// noClientData is set once the Provisioner has rejected an order because of its client data, as the Kyma Provisioner does.
	noClientData atomic.Bool
}

// New returns a client, or an error if the URL is invalid. It does not send a request.
func New(options Options) (*Client, error) {
	if !upstream.IsURL(options.URL) {
		return nil, errors.New("the URL of the Provisioner must have the form http://host:port/path")
	}

	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}

	if options.HTTPClient == nil {
		options.HTTPClient = &http.Client{CheckRedirect: upstream.NoRedirects}
	}

	wrapped := *options.HTTPClient

	if options.WrapTransport != nil {
		next := wrapped.Transport
		if next == nil {
			next = http.DefaultTransport
		}

		wrapped.Transport = options.WrapTransport(next)
	}

	return &Client{options: options, wrapped: &wrapped}, nil
}

// Probe sends a query that every GraphQL server supports. upstream.Recovery calls Probe during an outage.
func (c *Client) Probe(ctx context.Context) error {
	var answer struct{}

	return c.call("respond to a probe", Caller{}).MakeRequest(ctx, &graphql.Request{Query: "query Probe { __typename }", OpName: "Probe"},
		&graphql.Response{Data: &answer})
}

// ProvisionRuntime orders a runtime and returns the operation that creates it, with the ID of the runtime. An order with an
// IdempotencyKey can be repeated: our Provisioner returns the same operation. The Kyma Provisioner ignores the key and rejects
// a second order with the same Shoot name. The broker calls OrderRuntime instead, which builds the input from an instance.
func (c *Client) ProvisionRuntime(ctx context.Context, caller Caller, input *wire.ProvisionRuntimeInput) (Operation, error) {
	call := c.call("create the runtime", caller)

	answer, err := wire.ProvisionRuntime(ctx, call, input)
	if err != nil {
		return Operation{}, fmt.Errorf("ordering a runtime: %w", err)
	}

	operation := operationOf(answer.Result)
	if operation.ID == "" || operation.RuntimeID == "" {
		return Operation{}, call.missing("the IDs of the operation and the runtime")
	}

	return operation, nil
}

// UpgradeShoot orders a change of a runtime's cluster. It can be repeated with the same IdempotencyKey: our Provisioner returns
// the same operation. The Kyma Provisioner ignores the key and applies the same changes again; while another operation of the
// runtime is in progress, the error is failure.Waiting.
func (c *Client) UpgradeShoot(ctx context.Context, caller Caller, runtimeID string, input *wire.UpgradeShootInput) (Operation, error) {
	call := c.call("change the runtime", caller)

	answer, err := wire.UpgradeShoot(ctx, call, runtimeID, input)
	if err != nil {
		return Operation{}, fmt.Errorf("changing runtime %s: %w", runtimeID, err)
	}

	return call.started(answer.Result)
}

// DeprovisionRuntime orders the removal of a runtime and returns the ID of the operation. Like
// ProvisionRuntime, it can be repeated. The error is failure.NotFound if the Provisioner does not know the
// runtime, for example because an earlier removal has finished.
func (c *Client) DeprovisionRuntime(ctx context.Context, caller Caller, runtimeID string) (operationID string, err error) {
	call := c.call("remove the runtime", caller)

	answer, err := wire.DeprovisionRuntime(ctx, call, runtimeID)
	if err != nil {
		return "", fmt.Errorf("removing runtime %s: %w", runtimeID, err)
	}

	if answer.Result == "" {
		return "", call.missing("the ID of the operation")
	}

	return answer.Result, nil
}

// OperationStatus returns the current state of an operation. The operation must belong to the tenant.
func (c *Client) OperationStatus(ctx context.Context, tenant, operationID string) (Operation, error) {
	call := c.call("report the state of the operation", Caller{Tenant: tenant})

	answer, err := wire.OperationStatus(ctx, call, operationID)
	if err != nil {
		return Operation{}, fmt.Errorf("reading operation %s: %w", operationID, err)
	}

	if answer.Result == nil {
		return Operation{}, call.missing("the operation")
	}

	return operationOf(answer.Result), nil
}

// RuntimeStatus returns the last operation of a runtime. Only tests of the Provisioner use it; the broker looks up operations by
// ID.
func (c *Client) RuntimeStatus(ctx context.Context, tenant, runtimeID string) (Operation, error) {
	call := c.call("report the state of the runtime", Caller{Tenant: tenant})

	answer, err := wire.RuntimeStatus(ctx, call, runtimeID)
	if err != nil {
		return Operation{}, fmt.Errorf("reading runtime %s: %w", runtimeID, err)
	}

	if answer.Result == nil || answer.Result.LastOperationStatus == nil {
		return Operation{}, call.missing("the last operation")
	}

	return operationOf(answer.Result.LastOperationStatus), nil
}

// Kubeconfig returns a kubeconfig with cluster-admin rights in the runtime. The Provisioner chooses its
// lifetime. If the cluster does not exist yet, the error is failure.Waiting. Errors never quote the response.
func (c *Client) Kubeconfig(ctx context.Context, tenant, runtimeID string) (secret.String, error) {
	call := c.call("issue a kubeconfig for the runtime", Caller{Tenant: tenant})
	call.confidential = true

	answer, err := wire.Kubeconfig(ctx, call, runtimeID)
	if err != nil {
		return "", fmt.Errorf("getting the kubeconfig of runtime %s: %w", runtimeID, err)
	}

	if answer.Result == nil || answer.Result.RuntimeConfiguration == nil {
		return "", call.missing("the configuration of the runtime")
	}

	kubeconfig := valueOf(answer.Result.RuntimeConfiguration.Kubeconfig)
	if kubeconfig == "" {
		return "", failure.New(failure.Waiting, "the Provisioner has no kubeconfig for runtime %s yet", runtimeID).
			WithReason("", failure.ComponentProvisioner)
	}

	return secret.String(kubeconfig), nil
}

// Changes returns a page of the feed: the operations of all tenants that changed after the cursor. If no operation has changed
// yet, Changes waits for the first change. If there is no change within wait, or within 30 s if wait is longer, it returns an
// empty page. With an empty cursor, it immediately returns the current cursor. The error is failure.Permanent if the Provisioner
// no longer has the changes after the cursor, and wraps ErrNoFeed if the Provisioner has no feed.
//
// The request bypasses the concurrency limit and the circuit breaker, because it lasts for the whole wait.
func (c *Client) Changes(ctx context.Context, after string, wait time.Duration) (Changes, error) {
	wait = min(max(wait, 0), maxFeedWait)
	call := c.call("report changed operations", Caller{})
	call.client, call.timeout = c.options.HTTPClient, wait+feedMargin

	var cursor *string
	if after != "" {
		cursor = &after
	}

	answer, err := wire.Changes(ctx, call, cursor, int(wait.Round(time.Second)/time.Second))
	if err != nil {
		return Changes{}, fmt.Errorf("reading the feed: %w", err)
	}

	if answer.Result == nil || answer.Result.Cursor == "" {
		return Changes{}, call.missing("a cursor")
	}

	return changesOf(answer.Result), nil
}

// call returns the call for one request. action completes error messages; see call.action.
func (c *Client) call(action string, caller Caller) *call {
	return &call{
		client: c.wrapped, url: c.options.URL, timeout: c.options.Timeout, action: action, caller: caller,
	}
}
