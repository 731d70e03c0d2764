package edp

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

// Config configures the connection to EDP. An empty AdminURL switches EDP off.
type Config struct {
	AuthURL     string        `env:"AUTH_URL"    help:"URL of the token endpoint of the Event Data Platform, without /oauth2/token"`
	AdminURL    string        `env:"ADMIN_URL"   help:"URL of the administration API of the Event Data Platform; empty turns the integration off"`
	Namespace   string        `env:"NAMESPACE"   help:"namespace of the data tenants"`
	Secret      secret.String `env:"SECRET"      help:"client secret of the namespace"`
	Environment string        `env:"ENVIRONMENT" help:"environment of the data tenants"`
	Required    bool          `env:"REQUIRED"    help:"if true, the creation of an instance fails when its subaccount cannot be registered within 30 minutes; if false, the creation continues"`
	Timeout     time.Duration `env:"TIMEOUT"     help:"timeout of one call"`
	Calls       int           `env:"CALLS"       help:"maximum number of concurrent calls, per replica"`
}

// DefaultConfig returns the defaults, with EDP turned off.
func DefaultConfig() Config {
	return Config{Namespace: "kyma-dev", Environment: "dev", Timeout: 30 * time.Second, Calls: 10}
}

// Check reports all invalid settings in one error, which names their variables.
func (c Config) Check() error {
	if c.AdminURL == "" {
		return nil
	}

	return errors.Join(
		upstream.CheckURL("APP_EDP_ADMIN_URL", c.AdminURL),
		upstream.CheckURL("APP_EDP_AUTH_URL", c.AuthURL),
		failure.Unless(c.Namespace != "" && c.Secret != "" && c.Environment != "",
			"APP_EDP_ADMIN_URL: also set APP_EDP_NAMESPACE, APP_EDP_SECRET and APP_EDP_ENVIRONMENT"),
		failure.Unless(c.Calls > 0 && c.Timeout > 0, "APP_EDP_CALLS and APP_EDP_TIMEOUT: must be positive"),
	)
}

// Tenant describes a subaccount to register.
type Tenant struct {
	// Name is the ID of the subaccount.
	Name string
	// PlatformRegion is the region of the platform, such as cf-eu10. Its prefix identifies the kind of platform.
	PlatformRegion string
	// PlanName is the plan of the instance.
	PlanName string
}

// TenantName returns the name of the data tenant of a subaccount. Subaccounts that differ only in case have the same data tenant.
func TenantName(subaccount string) string { return strings.ToLower(subaccount) }

// Record returns the broker's record of the data tenant of an instance's subaccount.
func Record(instanceID, subaccount string, state environment.OutsideState) environment.OutsideObject {
	return environment.OutsideObject{
		InstanceID: instanceID, System: environment.SystemEDP, Kind: environment.KindDataTenant, Key: TenantName(subaccount), State: state,
	}
}

// The keys of the metadata entries.
const (
	KeyEnvironment = "maasConsumerEnvironment"
	KeyRegion      = "maasConsumerRegion"
	KeySubAccount  = "maasConsumerSubAccount"
	KeyServicePlan = "maasConsumerServicePlan"
)

// Entry is a metadata entry in its wire format.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// metadata returns the tenant's metadata entries, always in the same order.
func (t Tenant) metadata() []Entry {
	environments := map[string]string{"k8s": "KUBERNETES", "neo": "NEO"}
	plans := map[string]string{"azure_lite": "tdd", "free": "free"}
	platform, _, _ := strings.Cut(t.PlatformRegion, "-")

	return []Entry{
		{KeyEnvironment, cmp.Or(environments[platform], "CF")},
		{KeyRegion, t.PlatformRegion},
		{KeySubAccount, t.Name},
		{KeyServicePlan, cmp.Or(plans[t.PlanName], "standard")},
	}
}

// Client calls EDP. It is safe for concurrent use.
type Client struct {
	rest   *restclient.Client
	config Config
}

// New returns a client that sends its requests through the transport.
func New(config Config, transport http.RoundTripper) *Client {
	return &Client{config: config, rest: restclient.New(restclient.Options{
		Title: "EDP", Component: failure.ComponentEDP, Settings: "APP_EDP_AUTH_URL, APP_EDP_NAMESPACE and APP_EDP_SECRET",
		Transport: transport, Timeout: config.Timeout,
		Grant: &restclient.Grant{
			URL: strings.TrimSuffix(config.AuthURL, "/") + "/oauth2/token", Type: "client_credentials",
			ClientID: "edp-namespace;" + config.Namespace, ClientSecret: config.Secret,
			Scopes: []string{"edp-namespace.read", "edp-namespace.update"},
		},
	})}
}

// Probe returns an error unless EDP responds.
func (c *Client) Probe(ctx context.Context) error { return c.rest.Probe(ctx, c.config.AdminURL) }

// Register creates the data tenant and its metadata. It keeps existing objects, which may come from another instance or an
// earlier attempt.
func (c *Client) Register(ctx context.Context, tenant Tenant) error {
	const action = "register the subaccount"

	name := TenantName(tenant.Name)
	existing := map[string]bool{}

	err := c.rest.Do(ctx, restclient.Request{Method: http.MethodPost, URL: c.tenants(), Action: action, Body: map[string]string{
		"name": name, "environment": c.config.Environment,
		// EDP requires a secret but never uses it. The Kyma Environment Broker sends the same value.
		"secret": base64.StdEncoding.EncodeToString([]byte(name + c.config.Environment)),
	}})
	if failure.Is(err, failure.Conflict) {
		var found []Entry
		err = c.rest.Do(ctx, restclient.Request{Method: http.MethodGet, URL: c.entries(name), Action: action, Into: &found})

		for _, entry := range found {
			existing[entry.Key] = true
		}
	}

	if err != nil {
		return err
	}

	for _, entry := range tenant.metadata() {
		if existing[entry.Key] {
			continue
		}

		err := c.rest.Do(ctx, restclient.Request{Method: http.MethodPost, URL: c.entries(name), Action: action, Body: entry})
		if err != nil && !failure.Is(err, failure.Conflict) { // a conflict means that another instance has just added it
			return err
		}
	}

	return nil
}

// Deregister removes the metadata and the data tenant of the subaccount. It succeeds if they do not exist.
func (c *Client) Deregister(ctx context.Context, name string) error {
	name = TenantName(name)
	addresses := make([]string, 0, 5)

	for _, entry := range (Tenant{}).metadata() {
		addresses = append(addresses, c.entries(name)+"/"+entry.Key)
	}

	for _, address := range append(addresses, c.tenants()+"/"+url.PathEscape(name)+"/"+url.PathEscape(c.config.Environment)) {
		err := c.rest.Do(ctx, restclient.Request{Method: http.MethodDelete, URL: address, Action: "remove the subaccount"})
		if err != nil && !failure.Is(err, failure.NotFound) {
			return err
		}
	}

	return nil
}

// tenants returns the URL of the data tenants.
func (c *Client) tenants() string {
	return strings.TrimSuffix(c.config.AdminURL, "/") + "/namespaces/" + url.PathEscape(c.config.Namespace) + "/dataTenants"
}

// entries returns the URL of the metadata of a data tenant.
func (c *Client) entries(name string) string {
	return c.tenants() + "/" + url.PathEscape(name) + "/" + url.PathEscape(c.config.Environment) + "/metadata"
}
