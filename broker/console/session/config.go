package session

import (
	"errors"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// Config holds the environment variables of the console.
type Config struct {
	Enabled bool `env:"ENABLED" help:"serve the console at /console/"`

	OIDCClientID     string        `env:"OIDC_CLIENT_ID"     help:"console's client ID at the issuer APP_AUTH_OIDC_ISSUER_URL; the client must allow the redirect address APP_PUBLIC_URL/console/login/callback; if empty, users log in with passwords only"`
	OIDCClientSecret secret.String `env:"OIDC_CLIENT_SECRET" help:"secret of the client; empty for a public client"`
	OIDCScopes       []string      `env:"OIDC_SCOPES"        help:"scopes that the console requests from the issuer, comma-separated; openid is required"`

	BundlesKubeconfigPath string `env:"BUNDLES_KUBECONFIG_PATH" help:"kubeconfig for the bundle provisioner's API server, whose Bundles the console shows; its user needs the verbs get and list for bundles and bundledeployments; the file is read at each request. If empty, the console has no Bundles page"`

	IdleTimeout time.Duration `env:"IDLE_TIMEOUT"     help:"time without requests from the user after which a session ends; live updates of a page do not count"`
	Lifetime    time.Duration `env:"SESSION_LIFETIME" help:"maximum duration of a session, after which the user logs in again"`

	TenantNameClaim    string `env:"TENANT_NAME_CLAIM"    help:"claim of the ID token that is compared with the administrators of an instance, such as email; if empty, the claim of APP_AUTH_OIDC_NAME_CLAIM. Users see the instances that they administer"`
	TenantAccountClaim string `env:"TENANT_ACCOUNT_CLAIM" help:"claim of the ID token with the global accounts whose instances the user sees; empty for none"`
}

// DefaultConfig returns the defaults. Users log in with passwords only, because OIDCClientID is empty.
func DefaultConfig() Config {
	return Config{
		Enabled: true, OIDCScopes: []string{"openid", "profile", "email", "groups"}, IdleTimeout: time.Hour, Lifetime: 12 * time.Hour,
	}
}

// Check returns an error that names the variables of all invalid settings. publicURL is the value of APP_PUBLIC_URL, and issuer
// is the value of APP_AUTH_OIDC_ISSUER_URL.
func (c Config) Check(publicURL, issuer string) error {
	lifetimes := failure.Unless(c.IdleTimeout > 0 && c.Lifetime > 0, "APP_CONSOLE_IDLE_TIMEOUT, APP_CONSOLE_SESSION_LIFETIME: must be positive")
	if c.OIDCClientID == "" {
		return lifetimes
	}

	return errors.Join(lifetimes,
		failure.Unless(issuer != "", "APP_CONSOLE_OIDC_CLIENT_ID: also set APP_AUTH_OIDC_ISSUER_URL"),
		failure.Unless(slices.Contains(c.OIDCScopes, "openid"), "APP_CONSOLE_OIDC_SCOPES: must contain openid"),
		failure.Unless(upstream.IsURL(publicURL),
			"APP_CONSOLE_OIDC_CLIENT_ID: also set APP_PUBLIC_URL to an http or https URL, to which the issuer sends users back"),
	)
}
