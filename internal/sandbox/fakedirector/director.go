package fakedirector

import (
	"cmp"
	"crypto/rand"
	_ "embed"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegraphql"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

//go:embed schema.graphql
var schemaText string

// Endpoint paths and defaults of Options. The credentials can be constants: the sandbox listens only on the loopback interface,
// and its Director stores no real secrets.
const (
	GraphQLPath = "/graphql"
	TokenPath   = "/oauth/token" //nolint:gosec // a path

	DefaultClientID     = "provisioner"
	DefaultClientSecret = "provisioner-secret" //nolint:gosec // not a real secret

	DefaultConnectorURL = "https://connector.example.com/graphql"

	defaultTokenLifetime = time.Hour
)

// Options configures a Director.
type Options struct {
	// ClientID and ClientSecret are the credentials for access tokens. The defaults are DefaultClientID and DefaultClientSecret.
	ClientID, ClientSecret string
	// TokenLifetime is the validity of an access token. The default is one hour.
	TokenLifetime time.Duration
	// ConnectorURL is the address in one-time tokens. The default is DefaultConnectorURL. No server listens there: agents call
	// Connect directly.
	ConnectorURL string
	// File is the path of a file that stores the registered runtimes across restarts. If it is empty, a restart loses the runtimes.
	File string
	// Now returns the current time. The default is the system clock.
	Now func() time.Time
}

// Runtime is a registered runtime. Options.File stores its JSON, so renaming a field would lose data of existing sandboxes.
type Runtime struct {
	ID          string         `json:"id"`
	Tenant      string         `json:"tenant"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Labels      map[string]any `json:"labels"`
	Condition   string         `json:"condition"`
	CreatedAt   time.Time      `json:"createdAt"`
	ConditionAt time.Time      `json:"conditionAt"`
	// OneTimeTokens are the issued tokens, oldest first.
	OneTimeTokens []OneTimeToken `json:"tokens,omitempty"`
}

// Director is a simulated Director. It implements http.Handler and is safe for concurrent use. Access tokens and faults are in
// memory only. Registered runtimes and their one-time tokens survive a restart if Options.File is set.
type Director struct {
	*simulator.Base

	options Options
	schema  *fakegraphql.Schema

	mutex          sync.Mutex
	runtimes       []*Runtime
	unknownTenants map[string]bool
	tokens         map[string]time.Time
}

// New returns a Director with the runtimes from Options.File. A missing file is not an error, but an unreadable file is.
func New(options Options) (*Director, error) {
	if options.ClientID == "" {
		options.ClientID, options.ClientSecret = DefaultClientID, DefaultClientSecret
	}
	options.ConnectorURL = cmp.Or(options.ConnectorURL, DefaultConnectorURL)
	options.TokenLifetime = cmp.Or(options.TokenLifetime, defaultTokenLifetime)
	if options.Now == nil {
		options.Now = time.Now
	}
	schema, err := fakegraphql.NewSchema("of Director", schemaText)
	if err != nil {
		return nil, err
	}

	d := &Director{
		Base: simulator.NewBase("director"), options: options, schema: schema, unknownTenants: map[string]bool{}, tokens: map[string]time.Time{},
	}
	if err := d.restore(); err != nil {
		return nil, err
	}

	d.Mux.HandleFunc("POST "+TokenPath, d.Handle(TokenOperation, d.serveToken))
	d.Mux.HandleFunc("POST "+GraphQLPath, d.serveGraphQL)

	return d, nil
}

// Runtimes returns the registered runtimes of all tenants, oldest first. The result is a copy, except for the labels, which
// callers must not modify.
func (d *Director) Runtimes() []Runtime {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	runtimes := make([]Runtime, 0, len(d.runtimes))
	for _, runtime := range d.runtimes {
		copied := *runtime
		copied.OneTimeTokens = slices.Clone(runtime.OneTimeTokens)
		runtimes = append(runtimes, copied)
	}

	return runtimes
}

// SetLabel sets a label of a runtime, as its agent does, but does not write Options.File. It changes nothing if there is no such
// runtime.
func (d *Director) SetLabel(runtimeID, key string, value any) {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	for _, runtime := range d.runtimes {
		if runtime.ID == runtimeID {
			labels := maps.Clone(runtime.Labels)
			if labels == nil {
				labels = map[string]any{}
			}

			labels[key] = value
			runtime.Labels = labels
		}
	}
}

// Holds implements simulator.System. It describes the registered runtimes, without their one-time tokens.
func (d *Director) Holds() []string {
	var lines []string

	for _, runtime := range d.Runtimes() {
		lines = append(lines, fmt.Sprintf("runtime %s (%s) of tenant %s: %s, one-time tokens: %d",
			runtime.ID, runtime.Name, runtime.Tenant, runtime.Condition, len(runtime.OneTimeTokens)))
	}

	return lines
}

// Forget makes a tenant unknown: requests for this tenant fail with TenantNotFound. Runtimes still returns the tenant's runtimes.
// All other tenants are known without registration.
func (d *Director) Forget(tenant string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	d.unknownTenants[tenant] = true
}

// RevokeTokens invalidates all issued access tokens, so clients must log in again. One-time tokens stay valid.
func (d *Director) RevokeTokens() {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	clear(d.tokens)
}

// serveToken issues an access token for client credentials (RFC 6749, section 4.4), which the client sends with HTTP basic
// authentication. It grants the requested scope without checking it.
func (d *Director) serveToken(w http.ResponseWriter, request *http.Request) {
	id, secret, _ := request.BasicAuth()

	switch {
	case id != d.options.ClientID || secret != d.options.ClientSecret:
		simulator.WriteJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})

		return
	case request.PostFormValue("grant_type") != "client_credentials":
		simulator.WriteJSON(w, http.StatusBadRequest, map[string]any{"error": "unsupported_grant_type"})

		return
	}

	token := rand.Text()

	d.mutex.Lock()
	d.tokens[token] = d.options.Now().Add(d.options.TokenLifetime)
	d.mutex.Unlock()

	simulator.WriteJSON(w, http.StatusOK, map[string]any{
		"access_token": token, "token_type": "bearer", "scope": request.PostFormValue("scope"),
		"expires_in": int(d.options.TokenLifetime / time.Second),
	})
}

// authorized reports whether an access token was issued and has not expired at Options.Now. Expired tokens are never removed,
// because a Director runs only as long as a test or a sandbox.
func (d *Director) authorized(token string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	until, given := d.tokens[token]

	return given && d.options.Now().Before(until)
}
