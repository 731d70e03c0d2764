package fakedirector

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

//go:embed schema.graphql
var schemaText string

// The paths that it answers on, and what it lets in unless the options say otherwise.
const (
	GraphQLPath = "/graphql"
	TokenPath   = "/oauth/token" //nolint:gosec // a path

	DefaultClientID     = "provisioner"
	DefaultClientSecret = "provisioner-secret" //nolint:gosec // it protects nothing

	DefaultConnectorURL = "https://connector.example.com/graphql"

	defaultTokenLifetime = time.Hour
)

// Options say how it behaves.
type Options struct {
	// ClientID and ClientSecret are the credentials that get tokens; those of the constants if empty.
	ClientID, ClientSecret string
	// TokenLifetime is how long an access token is good; an hour if 0.
	TokenLifetime time.Duration
	// ConnectorURL is told with one-time tokens, that of the constants if empty. Nobody answers there: agents call Connect.
	ConnectorURL string
	// File, if set, keeps what is registered over restarts.
	File string
	// Now is the clock; the system's if nil.
	Now func() time.Time
}

// Runtime is a runtime that is registered.
type Runtime struct {
	ID          string         `json:"id"`
	Tenant      string         `json:"tenant"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Labels      map[string]any `json:"labels"`
	Condition   string         `json:"condition"`
	CreatedAt   time.Time      `json:"createdAt"`
	ConditionAt time.Time      `json:"conditionAt"`
	// OneTimeTokens are those that were given out for it, the oldest first.
	OneTimeTokens []OneTimeToken `json:"tokens,omitempty"`
}

// Director is a simulated Director. It is an http.Handler and may be used by many goroutines.
type Director struct {
	options Options
	schema  *ast.Schema
	routes  *http.ServeMux

	mutex    sync.Mutex
	runtimes []*Runtime
	strange  map[string]bool
	tokens   map[string]time.Time
	faults   []Fault
	calls    []string
}

// New returns a Director, with what its file holds.
func New(options Options) (*Director, error) {
	if options.ClientID == "" {
		options.ClientID, options.ClientSecret = DefaultClientID, DefaultClientSecret
	}

	if options.ConnectorURL == "" {
		options.ConnectorURL = DefaultConnectorURL
	}

	if options.TokenLifetime == 0 {
		options.TokenLifetime = defaultTokenLifetime
	}

	if options.Now == nil {
		options.Now = time.Now
	}

	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "director", Input: schemaText})
	if err != nil {
		return nil, fmt.Errorf("reading Director's schema: %w", err)
	}

	d := &Director{options: options, schema: schema, strange: map[string]bool{}, tokens: map[string]time.Time{}}
	if err := d.restore(); err != nil {
		return nil, err
	}

	d.routes = http.NewServeMux()
	d.routes.HandleFunc("POST "+TokenPath, d.serveToken)
	d.routes.HandleFunc("POST "+GraphQLPath, d.serveGraphQL)

	return d, nil
}

// ServeHTTP implements http.Handler.
func (d *Director) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	d.routes.ServeHTTP(w, request)
}

// Runtimes are those that are registered, the oldest first.
func (d *Director) Runtimes() []Runtime {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	told := make([]Runtime, 0, len(d.runtimes))
	for _, runtime := range d.runtimes {
		copied := *runtime
		copied.OneTimeTokens = slices.Clone(runtime.OneTimeTokens)
		told = append(told, copied)
	}

	return told
}

// Calls are the operations that were called, in order.
func (d *Director) Calls() []string {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	return slices.Clone(d.calls)
}

// Forget makes the tenant one that Director does not know.
func (d *Director) Forget(tenant string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	d.strange[tenant] = true
}

// RevokeTokens makes all access tokens bad that were given out.
func (d *Director) RevokeTokens() {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	clear(d.tokens)
}

// serveToken gives out an access token for client credentials.
func (d *Director) serveToken(w http.ResponseWriter, request *http.Request) {
	granted := request.PostFormValue("grant_type") // read whole, or a caller who leaves would not be noticed

	fault := d.befall(TokenOperation)
	if fault.begin(w, request) {
		return
	}

	id, secret, _ := request.BasicAuth()

	switch {
	case id != d.options.ClientID || secret != d.options.ClientSecret:
		writeJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})

		return
	case granted != "client_credentials":
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "unsupported_grant_type"})

		return
	}

	token := rand.Text()

	d.mutex.Lock()
	d.tokens[token] = d.options.Now().Add(d.options.TokenLifetime)
	d.mutex.Unlock()

	if fault.Lost {
		panic(http.ErrAbortHandler)
	}

	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": token, "token_type": "bearer", "scope": request.PostFormValue("scope"),
		"expires_in": int(d.options.TokenLifetime / time.Second),
	})
}

// authorized reports whether the token was given out and is still good.
func (d *Director) authorized(token string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	until, given := d.tokens[token]

	return given && d.options.Now().Before(until)
}
