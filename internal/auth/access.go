package auth

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/reload"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// Options are the settings and dependencies of New.
type Options struct {
	// Address is where the service listens. Beyond the loopback it requires authentication.
	Address string
	// Users is the value of APP_AUTH_BASIC_USERS.
	Users  secret.String
	Config Config
	// Clock measures rate limits, the validity of tokens and certificates, and the intervals of background work.
	Clock   clock.WithTicker
	Log     logrus.FieldLogger
	Metrics prometheus.Registerer
}

// Access authenticates and authorizes the clients of a service.
type Access struct {
	Authorizer *Authorizer
	// TLS is nil for plain HTTP.
	TLS *tls.Config
	// Files watches all files of the service. Other parts may add theirs before it runs.
	Files *reload.Watcher
	// Parts is the background work: watching files, refreshing the keys of the token issuer.
	Parts []lifecycle.Part
}

// New returns the access that the options describe. It reads all files, but does not call the token issuer, so a service starts while the
// issuer is down. Its error lists all invalid variables by name and none of their values.
func New(options Options) (*Access, error) {
	files := reload.NewWatcher(options.Log, options.Clock, options.Metrics)
	access := &Access{Files: files}
	access.Parts = []lifecycle.Part{files.Part()}

	var wrong [5]error

	access.TLS, wrong[0] = access.serverTLS(options.Config.TLS)

	authenticators := AnyOf{}
	for i, build := range []func(Options) (Authenticator, error){access.users, access.tokens, certificates} {
		built, err := build(options)
		if wrong[i+1] = err; err == nil && built != nil {
			authenticators = append(authenticators, built)
		}
	}

	limits, err := NewLimiter(options.Config.RateLimit, options.Config.RateLimitBurst, options.Clock)
	if err != nil {
		wrong[4] = fmt.Errorf("APP_RATE_LIMIT, APP_RATE_LIMIT_BURST: %w", err)
	}

	if err := errors.Join(wrong[:]...); err != nil {
		return nil, err
	}

	access.Authorizer = &Authorizer{Authenticator: authenticators, Limits: limits, Refused: count(options.Metrics)}
	if len(authenticators) == 0 {
		access.Authorizer.Authenticator = NoAuthentication{}
	}

	return access, CheckAddress(options.Address, access.Authorizer.Authenticator)
}

// serverTLS returns the configuration of the server, or nil without a certificate.
func (a *Access) serverTLS(config TLS) (*tls.Config, error) {
	server, err := reload.ServerTLS{
		CertFile: config.CertFile, KeyFile: config.KeyFile, ClientCAFile: config.ClientCAFile,
	}.Config(a.Files)
	if err != nil {
		return nil, fmt.Errorf("APP_TLS_CERT_FILE, APP_TLS_KEY_FILE, APP_TLS_CLIENT_CA_FILE: %w", err)
	}

	return server, nil
}

// users returns the users of the variable and the file together, or nil if there are none.
func (a *Access) users(options Options) (Authenticator, error) {
	fixed, err := ParseUsers(options.Users)

	switch {
	case err != nil:
		return nil, fmt.Errorf("APP_AUTH_BASIC_USERS: %w", err)
	case options.Config.UsersFile == "" && fixed.None():
		return nil, nil
	case options.Config.UsersFile == "":
		return fixed, nil
	}

	all, err := reload.Load("users", func(contents [][]byte) (Users, error) {
		more, err := ParseUserFile(contents[0])
		if err != nil {
			return Users{}, err
		}

		return fixed.And(more)
	}, options.Config.UsersFile)
	if err != nil {
		return nil, fmt.Errorf("APP_AUTH_BASIC_USERS_FILE: %w", err)
	}

	reload.Watch(a.Files, all, nil)

	return ReloadedUsers(all.Get), nil
}

// tokens returns the authenticator of the token issuer, or nil without an issuer. It adds the refresh of the keys to the parts.
func (a *Access) tokens(options Options) (Authenticator, error) {
	config := options.Config.OIDC
	if config.IssuerURL == "" {
		return nil, nil
	}

	rules, err := ParseRules(config.Roles)
	if err != nil {
		return nil, fmt.Errorf("APP_AUTH_OIDC_ROLES: %w", err)
	}

	transport, err := reload.ClientTLS{CAFile: config.CAFile}.Transport(a.Files, "token issuer")
	if err != nil {
		return nil, fmt.Errorf("APP_AUTH_OIDC_CA_FILE: %w", err)
	}

	tokens, err := NewTokens(TokenOptions{
		Issuer: config.IssuerURL, Audiences: config.Audience, Algorithms: config.Algorithms, Rules: rules, NameClaim: config.NameClaim,
		Client: &http.Client{Transport: transport}, Clock: options.Clock,
	})
	if err != nil {
		return nil, fmt.Errorf("APP_AUTH_OIDC_…: %w", err)
	}

	a.Parts = append(a.Parts, tokens.Part(lifecycle.Periodic{Clock: options.Clock, Log: options.Log}))

	return tokens, nil
}

// certificates returns the authenticator of client certificates, or nil without rules. Authorities without rules are an error: their clients
// could connect and do nothing.
func certificates(options Options) (Authenticator, error) {
	rules, err := ParseRules(options.Config.CertificateRoles)
	if err == nil {
		err = CheckCertificateRules(rules)
	}

	authorities := options.Config.TLS.ClientCAFile != ""

	switch {
	case err != nil:
		return nil, fmt.Errorf("APP_AUTH_CERTIFICATE_ROLES: %w", err)
	case authorities != (len(rules) > 0):
		return nil, errors.New("APP_TLS_CLIENT_CA_FILE, APP_AUTH_CERTIFICATE_ROLES: set both or neither, each is useless without the other")
	case !authorities:
		return nil, nil
	default:
		return Certificates{Rules: rules, Clock: options.Clock}, nil
	}
}

// count returns a function that counts rejected requests.
func count(metrics prometheus.Registerer) func(reason string) {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_requests_refused_total",
		Help: "Rejected requests, by reason: unauthenticated, forbidden, rate_limited, unchecked (credentials that could not be verified).",
	}, []string{"reason"})
	metrics.MustRegister(refused)

	return func(reason string) { refused.WithLabelValues(reason).Inc() }
}

// BeyondLoopback reports whether other machines may reach a listener on the address (host:port). It returns true for host names other than
// localhost and for invalid addresses.
func BeyondLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true
	}

	if host == "localhost" {
		return false
	}

	ip := net.ParseIP(host)

	return ip == nil || !ip.IsLoopback()
}

// CheckAddress rejects an address beyond the loopback without authentication: every client that reaches it would have all roles.
func CheckAddress(address string, authenticator Authenticator) error {
	if _, open := authenticator.(NoAuthentication); open && BeyondLoopback(address) {
		return fmt.Errorf("listening on %s, which other machines can reach, needs authentication: "+
			"set APP_AUTH_BASIC_USERS, APP_AUTH_BASIC_USERS_FILE, APP_AUTH_OIDC_ISSUER_URL or APP_TLS_CLIENT_CA_FILE", address)
	}

	return nil
}
