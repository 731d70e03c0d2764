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

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/program/reload"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// Config holds the environment variables for authentication and rate limits, which both services share. APP_AUTH_BASIC_USERS is a
// field of replica.Config instead. If UsersFile, OIDC.IssuerURL or TLS.ClientCAFile is empty, the service does not use the
// corresponding kind of authentication. If RateLimit or LoginFailures is 0, the corresponding limit does not apply.
type Config struct {
	UsersFile        string  `env:"AUTH_BASIC_USERS_FILE"  help:"file with additional users, one user:password[:role+role] per line; the service reloads the file when it changes"`
	OIDC             OIDC    `envPrefix:"AUTH_OIDC_"`
	CertificateRoles string  `env:"AUTH_CERTIFICATE_ROLES" help:"rules that grant roles to client certificates, as role=attribute:value,…; attributes are cn, o, ou, dns, email and uri"`
	TLS              TLS     `envPrefix:"TLS_"`
	RateLimit        float64 `env:"RATE_LIMIT"             help:"requests per second that a replica accepts from each client; 0 means no limit"`
	RateLimitBurst   int     `env:"RATE_LIMIT_BURST"       help:"maximum number of requests that each client may send in a burst"`

	LoginFailures int `env:"LOGIN_FAILURES" help:"number of failed password logins, per user name and client address, after which further logins are delayed by up to a minute; 0 turns off the delay"`

	TrustedOrigins []string `env:"TRUSTED_ORIGINS" help:"origins whose pages may send changes from browsers, comma-separated, such as https://console.example.com; the origin of the service is always trusted"`
	AllowedHosts   []string `env:"ALLOWED_HOSTS"   help:"host names, without ports, that clients may use in addition to localhost if the service has no authentication, comma-separated; with authentication, all hosts are accepted"`
}

// OIDC configures the accepted tokens of an OpenID Connect issuer. Without an IssuerURL, the other fields have no effect.
type OIDC struct {
	IssuerURL  string   `env:"ISSUER_URL" help:"URL of the issuer of accepted tokens; if empty, no tokens are accepted"`
	Audience   []string `env:"AUDIENCE"   help:"accepted audiences, comma-separated; a token must name at least one of them"`
	Roles      string   `env:"ROLES"      help:"rules that grant roles to tokens, as role=claim:value,…; a rule for the scope claim matches both scope and scp"`
	NameClaim  string   `env:"NAME_CLAIM" help:"claim that contains the name of the client"`
	Algorithms []string `env:"ALGORITHMS" help:"accepted signature algorithms, comma-separated"`
	CAFile     string   `env:"CA_FILE"    help:"file with the CA certificates that sign the issuer's certificate; if empty, the system's CA certificates are used"`
}

// TLS names the server's certificate files. They are reloaded when they change.
type TLS struct {
	CertFile     string `env:"CERT_FILE"      help:"file with the server's certificate and its intermediates; if empty, the server uses plain HTTP. The service reloads the file when it changes"`
	KeyFile      string `env:"KEY_FILE"       help:"file with the key of the certificate"`
	ClientCAFile string `env:"CLIENT_CA_FILE" help:"file with the CA certificates that sign client certificates; if empty, no client certificates are accepted"`
}

// Default returns the defaults: no authentication except the users of APP_AUTH_BASIC_USERS, no rate limit, and delayed logins
// after ten failures.
func Default() Config {
	return Config{
		OIDC: OIDC{
			Roles:     "osb=scope:broker:write,viewer=groups:runtimeViewer,operator=groups:runtimeOperator,admin=groups:runtimeAdmin",
			NameClaim: "sub", Algorithms: []string{"RS256", "ES256"},
		},
		RateLimitBurst: 100, LoginFailures: 10,
	}
}

// Options contains the settings and dependencies of New. All fields except Users are required.
type Options struct {
	// Address is the host and port of the API. If the address is not on the loopback interface, the service requires
	// authentication.
	Address string
	// Users is the value of APP_AUTH_BASIC_USERS, in the form that ParseUsers accepts.
	Users  secret.String
	Config Config
	// Clock is the source of time for rate limits, for the expiry of tokens and certificates, and for background work.
	Clock   clock.WithTicker
	Log     logrus.FieldLogger
	Metrics prometheus.Registerer
}

// Access is the access control of a service: its authorizer, its TLS configuration, and their background work.
type Access struct {
	Authorizer *Authorizer
	// TLS is the configuration of the API server; nil means plain HTTP.
	TLS *tls.Config
	// Passwords returns the current users with passwords, for form logins. It is nil if there are none.
	Passwords func() Users
	// Tokens verifies the tokens of the issuer. It is nil if no issuer is configured.
	Tokens *Tokens
	// Files reloads the certificate files and the file with users. Other packages can add files before Parts run.
	Files *reload.Watcher
	// Parts is the background work: watching files and refreshing the keys of the token issuer. The service must run all parts.
	Parts []lifecycle.Part
}

// New builds the access control from the options. New reads all files but does not call the token issuer, so a service can start
// while the issuer is down. The error names the invalid variables and contains no secrets.
func New(options Options) (*Access, error) {
	files := reload.NewWatcher(options.Log, options.Clock, options.Metrics)
	access := &Access{Files: files}
	access.Parts = []lifecycle.Part{files.Part()}

	var wrong [7]error

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

	logins, err := newLoginLimiter(options.Config.LoginFailures, options.Clock)
	if err != nil {
		wrong[6] = fmt.Errorf("APP_LOGIN_FAILURES: %w", err)
	}

	guard, err := newGuard(options.Config, len(authenticators) == 0)
	wrong[5] = err

	if err := errors.Join(wrong[:]...); err != nil {
		return nil, err
	}

	access.Authorizer = &Authorizer{Authenticator: authenticators, Limits: limits, Refused: count(options.Metrics), guard: guard, logins: logins}
	if len(authenticators) == 0 {
		access.Authorizer.Authenticator = NoAuthentication{}
	}

	return access, CheckAddress(options.Address, access.Authorizer.Authenticator)
}

// serverTLS returns the TLS configuration of the API server, or nil if no certificate is configured.
func (a *Access) serverTLS(config TLS) (*tls.Config, error) {
	server, err := reload.ServerTLS{
		CertFile: config.CertFile, KeyFile: config.KeyFile, ClientCAFile: config.ClientCAFile,
	}.Config(a.Files)
	if err != nil {
		return nil, fmt.Errorf("APP_TLS_CERT_FILE, APP_TLS_KEY_FILE, APP_TLS_CLIENT_CA_FILE: %w", err)
	}

	return server, nil
}

// users returns an authenticator for the users in APP_AUTH_BASIC_USERS and in the users file, or nil if neither is set. It also
// sets Passwords. The file is reloaded when it changes. It is rejected if the variable also lists one of its users, but with
// different roles.
func (a *Access) users(options Options) (Authenticator, error) {
	fixed, err := ParseUsers(options.Users)

	switch {
	case err != nil:
		return nil, fmt.Errorf("APP_AUTH_BASIC_USERS: %w", err)
	case options.Config.UsersFile == "" && fixed.None():
		return nil, nil
	case options.Config.UsersFile == "":
		a.Passwords = func() Users { return fixed }

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

	a.Passwords = all.Get

	return ReloadedUsers(all.Get), nil
}

// tokens returns the authenticator for tokens of the issuer, or nil if no issuer is configured. It also sets Tokens, and adds a
// lifecycle.Part that refreshes the issuer's keys.
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
		return nil, fmt.Errorf("APP_AUTH_OIDC_ISSUER_URL, APP_AUTH_OIDC_AUDIENCE, APP_AUTH_OIDC_NAME_CLAIM, APP_AUTH_OIDC_ALGORITHMS: %w", err)
	}

	a.Tokens = tokens
	a.Parts = append(a.Parts, tokens.Part(lifecycle.Periodic{Clock: options.Clock, Log: options.Log}))

	return tokens, nil
}

// certificates returns the authenticator for client certificates, or nil if neither rules nor a client CA is configured.
// Configuring only one of them is an error: without rules, clients have no role; without a CA, no certificate can be verified.
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
		return nil, errors.New("APP_TLS_CLIENT_CA_FILE, APP_AUTH_CERTIFICATE_ROLES: set both or neither; each needs the other")
	case !authorities:
		return nil, nil
	default:
		return Certificates{Rules: rules, Clock: options.Clock}, nil
	}
}

// count registers the counter of rejected requests and returns a function that increments it.
func count(metrics prometheus.Registerer) func(reason string) {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_requests_refused_total",
		Help: "Rejected requests, by reason: unauthenticated, forbidden, rate_limited, unchecked (credentials that could not be verified), " +
			"cross_origin (sent by a browser for a page of another origin), unknown_host (an unexpected Host header while authentication is off), login_delayed (too soon after failed logins).",
	}, []string{"reason"})
	metrics.MustRegister(refused)

	return func(reason string) { refused.WithLabelValues(reason).Inc() }
}

// BeyondLoopback reports whether other machines could reach a listener on the address (host:port). It returns true for host names
// other than localhost and for invalid addresses.
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

// CheckAddress returns an error if the service has no authentication and other machines can reach its address. Without this
// check, every client on the network would have all roles.
func CheckAddress(address string, authenticator Authenticator) error {
	if _, open := authenticator.(NoAuthentication); open && BeyondLoopback(address) {
		return fmt.Errorf("listening on %s, which other machines can reach, needs authentication: "+
			"set APP_AUTH_BASIC_USERS, APP_AUTH_BASIC_USERS_FILE, APP_AUTH_OIDC_ISSUER_URL or APP_TLS_CLIENT_CA_FILE", address)
	}

	return nil
}
