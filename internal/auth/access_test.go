package auth_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/logging"
)

func build(address string, change func(*auth.Options)) (*auth.Access, error) {
	options := auth.Options{
		Address: address, Config: auth.Default(), Clock: clock.RealClock{}, Log: logging.Discard(), Metrics: prometheus.NewRegistry(),
	}
	change(&options)

	return auth.New(options)
}

func TestInvalidConfiguration(t *testing.T) {
	const everywhere, here = "0.0.0.0:1", "127.0.0.1:1"

	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte("hush"), 0o600); err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		reason  string
		address string
		change  func(*auth.Options)
		want    string
	}{
		"Exposed":      {"every client would have all roles", everywhere, func(*auth.Options) {}, "needs authentication: set APP_AUTH_BASIC_USERS"},
		"Limited":      {"a rate limit does not replace authentication", everywhere, func(o *auth.Options) { o.Config.RateLimit = 1 }, "needs authentication"},
		"Users":        {"an invalid user could not log in", here, func(o *auth.Options) { o.Users = "hush" }, "APP_AUTH_BASIC_USERS:"},
		"File":         {"an invalid user in the file could not log in either", here, func(o *auth.Options) { o.Config.UsersFile = file }, "APP_AUTH_BASIC_USERS_FILE: line 1"},
		"MissingFile":  {"a named file must exist", here, func(o *auth.Options) { o.Config.UsersFile = file + "x" }, "APP_AUTH_BASIC_USERS_FILE"},
		"Issuer":       {"an issuer has a URL", here, func(o *auth.Options) { o.Config.OIDC.IssuerURL = "x" }, "APP_AUTH_OIDC_"},
		"Rules":        {"an unknown role grants nothing", here, func(o *auth.Options) { o.Config.OIDC.IssuerURL, o.Config.OIDC.Roles = "https://i", "x=y:z" }, "APP_AUTH_OIDC_ROLES"},
		"IssuerCA":     {"a named file must exist", here, func(o *auth.Options) { o.Config.OIDC.IssuerURL, o.Config.OIDC.CAFile = "https://i", file+"x" }, "APP_AUTH_OIDC_CA_FILE"},
		"NoRules":      {"rules need client authorities", here, func(o *auth.Options) { o.Config.CertificateRoles = "osb=cn:a" }, "set both or neither"},
		"Part":         {"certificates have no scopes", here, func(o *auth.Options) { o.Config.CertificateRoles = "osb=scope:a" }, "APP_AUTH_CERTIFICATE_ROLES"},
		"HalfTLS":      {"a certificate needs a key", here, func(o *auth.Options) { o.Config.TLS.CertFile = file }, "APP_TLS_KEY_FILE"},
		"NegativeRate": {"a rate cannot be negative", here, func(o *auth.Options) { o.Config.RateLimit = -1 }, "APP_RATE_LIMIT"},
		"Failures":     {"a number cannot be negative", here, func(o *auth.Options) { o.Config.LoginFailures = -1 }, "APP_LOGIN_FAILURES"},
		"Origin":       {"an origin has a scheme", here, func(o *auth.Options) { o.Config.TrustedOrigins = []string{"console.example.com"} }, "APP_TRUSTED_ORIGINS"},
		"Host":         {"a port is not compared", here, func(o *auth.Options) { o.Config.AllowedHosts = []string{"example.com:80"} }, "APP_ALLOWED_HOSTS"},
		"Everything": {"the error lists all invalid variables", here, func(o *auth.Options) {
			o.Users, o.Config.RateLimit, o.Config.TLS.KeyFile = "hush", -1, file
		}, "APP_TLS_KEY_FILE"},
	} {
		_, err := build(test.address, test.change)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %s: want an error with %q, got %v", name, test.reason, test.want, err)
		}

		if name == "Everything" && strings.Count(err.Error(), "\n") != 2 {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

func TestOneAuthenticatorSuffices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte("alice:a:viewer\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		reason    string
		change    func(*auth.Options)
		challenge string
	}{
		"Variable": {"users of the variable suffice", func(o *auth.Options) { o.Users = "alice:a" }, "Basic"},
		"File":     {"users of the file suffice", func(o *auth.Options) { o.Config.UsersFile = file }, "Basic"},
		"Issuer": {"an issuer suffices, even during an outage", func(o *auth.Options) {
			o.Config.OIDC.IssuerURL, o.Config.OIDC.Audience = "https://issuer.example.com", []string{"broker"}
		}, "Bearer"},
	} {
		built, err := build("0.0.0.0:1", test.change)
		if err != nil {
			t.Errorf("%s: %s: %v", name, test.reason, err)

			continue
		}

		recorder := httptest.NewRecorder()
		built.Authorizer.Require(auth.RoleOSB)(http.NotFoundHandler()).ServeHTTP(recorder,
			httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))

		if got := recorder.Header().Get("WWW-Authenticate"); recorder.Code != http.StatusUnauthorized || !strings.HasPrefix(got, test.challenge+" ") {
			t.Errorf("%s: a request without credentials gets %d and %q", name, recorder.Code, got)
		}
	}

	open, err := build("127.0.0.1:1", func(*auth.Options) {})
	if err != nil {
		t.Fatal(err)
	}

	if _, none := open.Authorizer.Authenticator.(auth.NoAuthentication); !none {
		t.Error("a service on the loopback without users requires authentication")
	}
}
