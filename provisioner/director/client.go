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
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/provisioner/director/wire"
)

// defaultTimeout is the default of Options.Timeout.
const defaultTimeout = 30 * time.Second

// Options configure a Client.
type Options struct {
	// URL is the address of Director's GraphQL API, with http or https.
	URL string
	// Timeout bounds each request to Director, including the request for an access token; 0 means 30 seconds. Update sends two
	// requests, so it can take twice as long.
	Timeout time.Duration
	// Credentials are read for each new access token, so renewed credentials take effect without a restart.
	Credentials Credentials
	// Transport sends the requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// WrapTransport and WrapTokenTransport wrap the transports for Director and for the token endpoint; nil leaves Transport as
	// it is. They are separate because each upstream has its own circuit breaker.
	WrapTransport, WrapTokenTransport func(http.RoundTripper) http.RoundTripper
}

// Client is a client of one Director. It is safe for concurrent use: all callers share one access token.
type Client struct {
	url     string
	timeout time.Duration
	http    *http.Client
	tokens  *upstream.Tokens
}

// Runtime contains the fields of a runtime's entry in Director that the Provisioner writes. A label value can be any JSON value.
type Runtime struct {
	ID          string
	Name        string
	Description string
	Labels      map[string]any
}

// Condition is a runtime's condition, which Compass shows to its users. Director stores it and does not interpret it.
type Condition = wire.RuntimeStatusCondition

// The conditions that the Provisioner sets.
const (
	Provisioning = wire.RuntimeStatusConditionProvisioning
	Connected    = wire.RuntimeStatusConditionConnected
	Failed       = wire.RuntimeStatusConditionFailed
)

// Change contains the fields that Update changes. Fields with a zero value do not change.
type Change struct {
	// Labels are added to the labels of the runtime. A label with the same key is replaced.
	Labels    map[string]any
	Condition Condition
}

// Token is a one-time token, with which the agent of a runtime fetches its client certificate from the Connector.
type Token struct {
	Token        secret.String
	ConnectorURL string
}

// New returns a client. It does not call Director, which may be unavailable. It fails if the URL is invalid.
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

// newHTTPClient returns a client that does not follow redirects, because they could send the credentials to another host.
func newHTTPClient(transport http.RoundTripper, wrap func(http.RoundTripper) http.RoundTripper) *http.Client {
	if wrap != nil {
		transport = wrap(transport)
	}

	return &http.Client{Transport: transport, CheckRedirect: upstream.NoRedirects}
}

// checkAddress checks the form of a URL. Its error message is a clause that follows the name of the setting.
func checkAddress(text string) error {
	if !upstream.IsURL(text) {
		return errors.New("must have the form https://host/path")
	}

	return nil
}

// Probe sends a query that every GraphQL server supports. It needs no tenant. The circuit breaker calls it to detect recovery.
func (c *Client) Probe(ctx context.Context) error {
	var answer struct{}

	return c.call("answer", "").MakeRequest(ctx, &graphql.Request{Query: "query Probe { __typename }", OpName: "Probe"},
		&graphql.Response{Data: &answer})
}

// ProbeToken tests the token endpoint: it requests a new access token even if the cached token is still valid.
func (c *Client) ProbeToken(ctx context.Context) error {
	c.tokens.Discard(ctx, "")

	_, err := c.tokens.Get(ctx)

	return err
}

// Register registers the runtime and returns the ID that Director assigns. It is not idempotent: callers first use Find to look
// for the registration of an earlier attempt.
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

// Find returns the tenant's runtimes that have the given label with the given value. The result may be empty. For an unknown
// tenant, it returns an error with ErrTenantUnknown in its chain. Find reads only one page of results, so callers use labels that
// few runtimes share.
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

// maxPages limits the number of pages that List reads. With Director's page size of 200, that is 20,000 runtimes of one tenant.
const maxPages = 100

// List returns all of the tenant's runtimes that have the given label, whatever its value. For an unknown tenant, it returns an
// error with ErrTenantUnknown in its chain.
func (c *Client) List(ctx context.Context, tenant, label string) ([]Runtime, error) {
	var (
		found []Runtime
		after *string
	)

	for range maxPages {
		call := c.call("list runtimes", tenant)

		answer, err := wire.ListRuntimes(ctx, call, []*wire.LabelFilter{{Key: label}}, after)
		if err != nil {
			return nil, err
		}

		if answer.Result == nil || answer.Result.PageInfo == nil {
			return nil, call.noResult()
		}

		for _, runtime := range answer.Result.Data {
			found = append(found, runtimeOf(runtime))
		}

		if !answer.Result.PageInfo.HasNextPage || len(answer.Result.Data) == 0 {
			return found, nil
		}

		after = &answer.Result.PageInfo.EndCursor
	}

	return nil, failure.New(failure.Permanent, "Director has too many runtimes of tenant %q to list them", tenant).
		WithReason(failure.ReasonInternal, failure.ComponentDirector)
}

// Get returns the runtime with the given ID, or a failure.NotFound error.
func (c *Client) Get(ctx context.Context, tenant, id string) (Runtime, error) {
	call := c.call("read the runtime", tenant)

	answer, err := wire.GetRuntime(ctx, call, id)
	if err != nil {
		return Runtime{}, err
	}

	if answer.Result == nil {
		return Runtime{}, failure.New(failure.NotFound, "Director has no runtime %s of tenant %q", id, tenant).
			WithReason(failure.ReasonDirectorNilResponse, failure.ComponentDirector)
	}

	return runtimeOf(answer.Result), call.checkID(answer.Result.Id, id)
}

// LabelConsole is the key of the label that contains the address of the runtime's console. The runtime agent sets it.
const LabelConsole = "runtime_consoleUrl"

// Console returns the address of the runtime's console. It is empty if Director does not know the runtime or the tenant, or if
// the label does not contain an HTTP URL.
func (c *Client) Console(ctx context.Context, tenant, id string) (string, error) {
	runtime, err := c.Get(ctx, tenant, id)
	if failure.Is(err, failure.NotFound) || errors.Is(err, ErrTenantUnknown) {
		return "", nil
	}

	if address, _ := runtime.Labels[LabelConsole].(string); upstream.IsURL(address) {
		return address, err
	}

	return "", err
}

// Update changes the runtime with the given ID. Director replaces the labels as a whole, so Update reads the current labels
// first. If two updates run concurrently, the labels that one of them sets may be lost.
func (c *Client) Update(ctx context.Context, tenant, id string, change Change) error {
	runtime, err := c.Get(ctx, tenant, id)
	if err != nil {
		return err
	}

	labels := map[string]any{}
	maps.Copy(labels, runtime.Labels)
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

// Unregister removes the runtime with the given ID. It succeeds for an unknown runtime or tenant, so callers may repeat it.
func (c *Client) Unregister(ctx context.Context, tenant, id string) error {
	call := c.call("unregister the runtime", tenant)

	answer, err := wire.UnregisterRuntime(ctx, call, id)

	switch {
	case errors.Is(err, ErrTenantUnknown), failure.Is(err, failure.NotFound), err == nil && answer.Result == nil:
		return nil
	case err != nil:
		return err
	}

	return call.checkID(answer.Result.Id, id)
}

// OneTimeToken returns a new one-time token for the agent of the runtime. Errors never quote the response, which contains the
// token.
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

// runtimeOf converts the generated type, whose optional fields are pointers, to a Runtime.
func runtimeOf(answer *wire.RuntimeFields) Runtime {
	return Runtime{
		ID: answer.Id, Name: answer.Name, Description: ptr.Deref(answer.Description, ""), Labels: ptr.Deref(answer.Labels, nil),
	}
}

// optional returns nil for "", so that the request omits the field.
func optional(text string) *string {
	if text == "" {
		return nil
	}

	return &text
}
