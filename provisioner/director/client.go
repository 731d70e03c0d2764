package director

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/graphqlclient"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/director/wire"
)

const defaultTimeout = 30 * time.Second

// Options configure a Client.
type Options struct {
	// URL is the address of its GraphQL API.
	URL string
	// Timeout bounds each call, including that for an access token; 0 means 30 s.
	Timeout time.Duration
	// Credentials are read for each new access token.
	Credentials Credentials
	// Transport sends the requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// WrapTransport and WrapTokenTransport, if set, wrap the transports of requests to Director and to the token endpoint.
	WrapTransport, WrapTokenTransport func(http.RoundTripper) http.RoundTripper
}

// Client is a client of one Director. It is safe for concurrent use.
type Client struct {
	url     string
	timeout time.Duration
	http    *http.Client
	tokens  *tokens
}

// Runtime is a runtime as Director stores it.
type Runtime struct {
	ID          string
	Name        string
	Description string
	Labels      map[string]any
}

// Condition is the state of a runtime in Director.
type Condition = wire.RuntimeStatusCondition

// The conditions that the Provisioner sets.
const (
	Provisioning = wire.RuntimeStatusConditionProvisioning
	Connected    = wire.RuntimeStatusConditionConnected
	Failed       = wire.RuntimeStatusConditionFailed
)

// Change lists the changes of an Update. Zero fields stay as they are.
type Change struct {
	// Labels are added to those of the runtime, or replace them.
	Labels    map[string]any
	Condition Condition
}

// Token lets the agent of a runtime fetch its certificate, once.
type Token struct {
	Token        secret.String
	ConnectorURL string
}

// New returns a client, or an error if an option is invalid. It makes no call.
func New(options Options) (*Client, error) {
	if err := checkAddress(options.URL); err != nil {
		return nil, fmt.Errorf("the URL of Director %w", err)
	}

	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}

	if options.Transport == nil {
		options.Transport = http.DefaultTransport
	}

	return &Client{
		url: options.URL, timeout: options.Timeout,
		http:   newHTTPClient(options.Transport, options.WrapTransport),
		tokens: newTokens(options.Credentials, newHTTPClient(options.Transport, options.WrapTokenTransport)),
	}, nil
}

// newHTTPClient returns a client that follows no redirects.
func newHTTPClient(transport http.RoundTripper, wrap func(http.RoundTripper) http.RoundTripper) *http.Client {
	if wrap != nil {
		transport = wrap(transport)
	}

	return &http.Client{Transport: transport, CheckRedirect: graphqlclient.NoRedirects}
}

func checkAddress(text string) error {
	if !graphqlclient.IsURL(text) {
		return errors.New("must be like https://host/path")
	}

	return nil
}

// Probe makes a query that every GraphQL server answers. It sends no tenant, so it works without a runtime.
func (c *Client) Probe(ctx context.Context) error {
	var answer struct{}

	return c.call("answer", "").MakeRequest(ctx, &graphql.Request{Query: "query Probe { __typename }", OpName: "Probe"},
		&graphql.Response{Data: &answer})
}

// ProbeToken requests a new access token, even if the cached one is valid: it tests the token endpoint.
func (c *Client) ProbeToken(ctx context.Context) error {
	c.tokens.discard("")

	_, err := c.tokens.get(ctx)

	return err
}

// Register registers the runtime and returns its id in Director. It is not idempotent: call Find first.
func (c *Client) Register(ctx context.Context, tenant string, runtime Runtime) (string, error) {
	call := c.call("register the runtime", tenant)

	answer, err := wire.RegisterRuntime(ctx, call, &wire.RuntimeRegisterInput{
		Name: runtime.Name, Description: optional(runtime.Description), Labels: &runtime.Labels,
	})
	if err != nil {
		return "", err
	}

	if answer.Result == nil || answer.Result.Id == "" {
		return "", call.noResult()
	}

	return answer.Result.Id, nil
}

// Find returns the tenant's runtimes with this value of the label. It returns none if no runtime matches; an unknown tenant is
// ErrTenantUnknown.
func (c *Client) Find(ctx context.Context, tenant, label, value string) ([]Runtime, error) {
	call := c.call("find runtimes", tenant)

	query, err := json.Marshal(value)
	if err != nil {
		return nil, failure.Wrap(failure.Internal, err, "encoding a label failed")
	}

	text := string(query)

	answer, err := wire.FindRuntimes(ctx, call, []*wire.LabelFilter{{Key: label, Query: &text}})
	if err != nil {
		return nil, err
	}

	if answer.Result == nil {
		return nil, call.noResult()
	}

	found := make([]Runtime, 0, len(answer.Result.Data))
	for _, runtime := range answer.Result.Data {
		found = append(found, runtimeOf(runtime))
	}

	return found, nil
}

// Get returns a runtime, or failure.NotFound.
func (c *Client) Get(ctx context.Context, tenant, id string) (Runtime, error) {
	call := c.call("read the runtime", tenant)

	answer, err := wire.GetRuntime(ctx, call, id)
	if err != nil {
		return Runtime{}, err
	}

	if answer.Result == nil {
		return Runtime{}, failure.New(failure.NotFound, "Director knows no runtime %s of tenant %q", id, tenant).
			WithReason(failure.ReasonDirectorNilResponse, failure.ComponentDirector)
	}

	return runtimeOf(answer.Result), call.checkID(answer.Result.Id, id)
}

// Update changes a runtime. Director replaces all labels of a runtime at once, so it reads them first.
func (c *Client) Update(ctx context.Context, tenant, id string, change Change) error {
	runtime, err := c.Get(ctx, tenant, id)
	if err != nil {
		return err
	}

	labels := maps.Clone(runtime.Labels)
	if labels == nil {
		labels = map[string]any{}
	}

	maps.Copy(labels, change.Labels)

	input := &wire.RuntimeUpdateInput{Name: runtime.Name, Description: optional(runtime.Description), Labels: &labels}
	if change.Condition != "" {
		input.StatusCondition = &change.Condition
	}

	call := c.call("update the runtime", tenant)

	answer, err := wire.UpdateRuntime(ctx, call, id, input)
	if err != nil {
		return err
	}

	if answer.Result == nil {
		return call.noResult()
	}

	return call.checkID(answer.Result.Id, id)
}

// Unregister removes a runtime from Director. An unknown runtime or tenant is not an error.
func (c *Client) Unregister(ctx context.Context, tenant, id string) error {
	call := c.call("unregister the runtime", tenant)

	answer, err := wire.UnregisterRuntime(ctx, call, id)

	switch {
	case errors.Is(err, ErrTenantUnknown) || failure.Is(err, failure.NotFound):
		return nil
	case err != nil:
		return err
	case answer.Result == nil:
		return nil
	}

	return call.checkID(answer.Result.Id, id)
}

// OneTimeToken returns a new token for the agent of the runtime. The token works once; its answer is never quoted in errors.
func (c *Client) OneTimeToken(ctx context.Context, tenant, runtimeID string) (Token, error) {
	call := c.call("issue a token for the runtime agent", tenant)
	call.confidential = true

	answer, err := wire.OneTimeToken(ctx, call, runtimeID)
	if err != nil {
		return Token{}, err
	}

	if answer.Result == nil || answer.Result.Token == "" || answer.Result.ConnectorURL == "" {
		return Token{}, call.noResult()
	}

	return Token{Token: secret.String(answer.Result.Token), ConnectorURL: answer.Result.ConnectorURL}, nil
}

func runtimeOf(answer *wire.RuntimeFields) Runtime {
	runtime := Runtime{ID: answer.Id, Name: answer.Name}

	if answer.Description != nil {
		runtime.Description = *answer.Description
	}

	if answer.Labels != nil {
		runtime.Labels = *answer.Labels
	}

	return runtime
}

func optional(text string) *string {
	if text == "" {
		return nil
	}

	return &text
}
