package auth

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/reload"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// Options are what access is built of.
type Options struct {
	// Address is where the service listens. Beyond the loopback somebody has to be known.
	Address string
	// Users are those of APP_AUTH_BASIC_USERS.
	Users   secret.String
	Config  Config
	Clock   clock.WithTicker
	Log     logrus.FieldLogger
	Metrics prometheus.Registerer
}

// Access is how clients come in.
type Access struct {
	Gate *Gate
	// TLS is nil where the service speaks none.
	TLS *tls.Config
	// Files follows files. Other parts of the service may add theirs before it runs.
	Files *reload.Watcher
	// Parts run beside the service.
	Parts []lifecycle.Part
}

// New builds access. Its errors name the variables that have to be changed.
func New(options Options) (*Access, error) {
	files := reload.NewWatcher(options.Log, options.Clock, options.Metrics)
	access := &Access{Files: files}
	access.Parts = []lifecycle.Part{files.Part()}

	var wrong [5]error

	access.TLS, wrong[0] = access.serverTLS(options.Config.TLS)

	mechanisms := AnyOf{}
	for i, mechanism := range []func(Options) (Mechanism, error){access.users, access.tokens, certificates} {
		made, err := mechanism(options)
		if wrong[i+1] = err; err == nil && made != nil {
			mechanisms = append(mechanisms, made)
		}
	}

	limits, err := NewLimiter(options.Config.RateLimit, options.Config.RateLimitBurst, options.Clock)
	if err != nil {
		wrong[4] = fmt.Errorf("APP_RATE_LIMIT, APP_RATE_LIMIT_BURST: %w", err)
	}

	if err := errors.Join(wrong[:]...); err != nil {
		return nil, err
	}

	access.Gate = &Gate{Mechanism: mechanisms, Limits: limits, Refused: count(options.Metrics)}
	if len(mechanisms) == 0 {
		access.Gate.Mechanism = Everybody{}
	}

	return access, CheckExposure(options.Address, access.Gate.Mechanism)
}

func (a *Access) serverTLS(config TLS) (*tls.Config, error) {
	made, err := reload.ServerTLS{
		CertFile: config.CertFile, KeyFile: config.KeyFile, ClientCAFile: config.ClientCAFile,
	}.Config(a.Files)
	if err != nil {
		return nil, fmt.Errorf("APP_TLS_CERT_FILE, APP_TLS_KEY_FILE, APP_TLS_CLIENT_CA_FILE: %w", err)
	}

	return made, nil
}

// users are those of the variable, together with those of the file.
func (a *Access) users(options Options) (Mechanism, error) {
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

	return Changing(all.Get), nil
}

func (a *Access) tokens(options Options) (Mechanism, error) {
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

func certificates(options Options) (Mechanism, error) {
	rules, err := ParseRules(options.Config.CertificateRoles)
	if err == nil {
		err = CheckCertificateRules(rules)
	}

	authorities := options.Config.TLS.ClientCAFile != ""

	switch {
	case err != nil:
		return nil, fmt.Errorf("APP_AUTH_CERTIFICATE_ROLES: %w", err)
	case authorities != (len(rules) > 0):
		return nil, errors.New("APP_TLS_CLIENT_CA_FILE, APP_AUTH_CERTIFICATE_ROLES: one of them is of no use without the other, set both or neither")
	case !authorities:
		return nil, nil
	default:
		return Certificates{Rules: rules, Clock: options.Clock}, nil
	}
}

// count counts the requests that are not let in.
func count(metrics prometheus.Registerer) func(why string) {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_requests_refused_total",
		Help: "Rejected requests, by reason: unauthenticated, forbidden, rate_limited, unchecked (credentials that could not be verified).",
	}, []string{"reason"})
	metrics.MustRegister(refused)

	return func(why string) { refused.WithLabelValues(why).Inc() }
}
