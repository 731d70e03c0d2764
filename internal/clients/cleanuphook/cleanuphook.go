package cleanuphook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

// Config configures the connection to the hook. Without a URL, operators clean up dirty accounts.
type Config struct {
	URL      string        `env:"URL"      help:"https URL of the hook that empties dirty accounts of the account pool and confirms that they are empty; without a URL, operators must release dirty accounts"`
	User     string        `env:"USER"     help:"user for the hook; empty for none"`
	Password secret.String `env:"PASSWORD" help:"password of the user"`
	Timeout  time.Duration `env:"TIMEOUT"  help:"timeout of one call, at most 1m"`
}

// maxTimeout is the maximum timeout of a call. It limits how long calls for many accounts take in total.
const maxTimeout = time.Minute

// DefaultConfig returns the defaults, without a hook.
func DefaultConfig() Config { return Config{Timeout: 30 * time.Second} }

// Check reports all invalid settings in one error, which names their variables. A URL without TLS must refer to the local
// machine.
func (c Config) Check() error {
	if c.URL == "" {
		return nil
	}

	return errors.Join(
		failure.Unless(upstream.IsURL(c.URL) && (strings.HasPrefix(c.URL, "https://") || isLoopback(c.URL)),
			"APP_ACCOUNT_POOL_CLEANUP_URL: must be an https URL"),
		failure.Unless((c.User == "") == (c.Password == ""),
			"APP_ACCOUNT_POOL_CLEANUP_USER and APP_ACCOUNT_POOL_CLEANUP_PASSWORD: set both or neither"),
		failure.Unless(c.Timeout > 0 && c.Timeout <= maxTimeout, "APP_ACCOUNT_POOL_CLEANUP_TIMEOUT: must be positive and at most 1m"),
	)
}

func isLoopback(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}

	ip := net.ParseIP(parsed.Hostname())

	return parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// Question is the body of a request to the hook, in its wire format. It does not contain credentials.
type Question struct {
	// Account is the name of the Gardener binding that represents the account, and Namespace is its namespace.
	Account   string `json:"account"`
	Namespace string `json:"namespace"`
	// Type is the value of the hyperscalerType label. Provider is the part of this value before the first underscore.
	Type     string `json:"hyperscalerType"`
	Provider string `json:"provider"`
	// Tenant is the value of the tenantName label, which still names the previous tenant.
	Tenant   string `json:"tenantName"`
	EUAccess bool   `json:"euAccess"`
}

// Answer is the response of the hook, in its wire format.
type Answer struct {
	State accountpool.CleanupState `json:"state"`
	// Message is for operators.
	Message string `json:"message"`
}

// Hook is a client for the cleanup hook. It is safe for concurrent use.
type Hook struct {
	rest      *restclient.Client
	url       string
	namespace string
}

// New returns a client that sends its requests through the transport. namespace is the namespace of the accounts. The
// configuration must be valid.
func New(config Config, namespace string, transport http.RoundTripper) *Hook {
	options := restclient.Options{
		Title: "the cleanup hook", Component: failure.ComponentCleanupHook,
		Settings:  "APP_ACCOUNT_POOL_CLEANUP_USER and APP_ACCOUNT_POOL_CLEANUP_PASSWORD",
		Transport: transport, Timeout: config.Timeout,
	}

	if config.User != "" {
		options.Authorize = func(request *http.Request) { request.SetBasicAuth(config.User, config.Password.Reveal()) }
	}

	return &Hook{url: config.URL, namespace: namespace, rest: restclient.New(options)}
}

// Probe returns an error unless the hook responds.
func (h *Hook) Probe(ctx context.Context) error { return h.rest.Probe(ctx, h.url) }

// Clean asks the hook to empty the account, and returns the state of the cleanup and a message for operators. Repeated calls
// query the progress.
func (h *Hook) Clean(ctx context.Context, account accountpool.Account) (accountpool.CleanupState, string, error) {
	const action = "clean up the account"

	provider, _, _ := strings.Cut(account.Type, "_")

	var answer Answer

	err := h.rest.Do(ctx, restclient.Request{Method: http.MethodPost, URL: h.url, Action: action, Into: &answer, Body: Question{
		Account: account.Name, Namespace: h.namespace, Type: account.Type, Provider: provider, Tenant: account.Tenant, EUAccess: account.EUAccess,
	}})
	if err != nil {
		return "", "", err
	}

	switch answer.State {
	case accountpool.CleanupClean, accountpool.CleanupPending, accountpool.CleanupFailed:
		return answer.State, upstream.Excerpt(answer.Message), nil
	default:
		return "", "", failure.New(failure.Transient, "the cleanup hook could not %s: its response contains no state, or an unknown one", action).
			WithReason(failure.ReasonHTTPStatus, failure.ComponentCleanupHook)
	}
}
