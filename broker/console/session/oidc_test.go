package session_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/environment-broker/environment-broker/broker/console/session"
	"github.com/environment-broker/environment-broker/internal/auth"
)

func TestLoginAtIssuer(t *testing.T) {
	for _, test := range []struct {
		reason string
		claims map[string]any
		want   string
	}{
		{"a role by the rules of the operator API", map[string]any{"groups": []string{"other", "runtimeViewer"}}, "operator page of olga"},
		{"no role: a tenant", nil, "tenant page of olga with "},
		{"a tenant with accounts", map[string]any{"account": []string{"ga1", "ga2"}}, "tenant page of olga with ga1+ga2"},
	} {
		f := newFixture(t, func(_ *auth.Options, options *session.Options) { options.Config.TenantAccountClaim = "account" })
		maps.Copy(f.issuer.Claims, test.claims)

		b := f.browser()
		got := b.logInOIDC()
		b.want(test.reason, got, http.StatusSeeOther)

		if page := got.Header.Get("Location"); page != "/console/instances/one" {
			t.Errorf("%s: the login returns to %s", test.reason, page)
		}

		f.restart()
		b.wantPage(test.reason, test.want)
	}
}

func TestIssuerIsNotBelieved(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(f *fixture)
		want   int
	}{
		{"nothing is wrong", func(*fixture) {}, http.StatusSeeOther},
		{"the user refuses", func(f *fixture) { f.issuer.Deny = true }, http.StatusUnauthorized},
		{"the nonce is that of another login", func(f *fixture) { f.issuer.Claims["nonce"] = "other" }, http.StatusUnauthorized},
		{"the nonce is missing", func(f *fixture) { f.issuer.Claims["nonce"] = nil }, http.StatusUnauthorized},
		{"the token is for another client", func(f *fixture) { f.issuer.Claims["aud"] = "environment-broker" }, http.StatusUnauthorized},
		{"the token was issued to another client", func(f *fixture) {
			f.issuer.Claims["aud"], f.issuer.Claims["azp"] = []string{"console", "other"}, "other"
		}, http.StatusUnauthorized},
		{"the token has expired", func(f *fixture) { f.issuer.Claims["exp"] = time.Now().Add(-time.Hour).Unix() }, http.StatusUnauthorized},
		{"the token is from another issuer", func(f *fixture) { f.issuer.Claims["iss"] = "https://other.example.com" }, http.StatusUnauthorized},
		{"the user has no name", func(f *fixture) { f.issuer.Claims["sub"] = "" }, http.StatusUnauthorized},
		{"the issuer knows no such secret", func(f *fixture) { f.issuer.ClientSecret = "other" }, http.StatusUnauthorized},
		{"there is no token", func(f *fixture) { f.issuer.TokenBody = `{"access_token":"x","token_type":"Bearer"}` }, http.StatusUnauthorized},
		{"the token is rubbish", func(f *fixture) { f.issuer.TokenBody = `{"access_token":"x","id_token":"x.y.z"}` }, http.StatusUnauthorized},
		{"the response is too large", func(f *fixture) {
			f.issuer.TokenBody = `{"access_token":"` + strings.Repeat("x", 2<<20) + `"}`
		}, http.StatusServiceUnavailable},
		{"the issuer fails", func(f *fixture) { f.issuer.TokenStatus = http.StatusBadGateway }, http.StatusServiceUnavailable},
		{"the issuer redirects", func(f *fixture) { f.issuer.TokenStatus = http.StatusFound }, http.StatusUnauthorized},
	} {
		f := newFixture(t)
		b := f.browser()
		address := b.callback()
		authorized := address

		test.change(f)

		if f.issuer.Deny {
			authorized = b.callback()
		}

		got := b.get(authorized)
		if got.Status != test.want {
			t.Errorf("%s: want status %d, got %d %s", test.reason, test.want, got.Status, got.Body)
		}

		if test.want != http.StatusSeeOther {
			b.wantLogin(test.reason)
		}
	}
}

func TestLoginAtIssuerEnds(t *testing.T) {
	f := newFixture(t)
	b := f.browser()

	address := b.callback()
	b.want("the login", b.get(address), http.StatusSeeOther)
	b.want("the same response of the issuer again", b.get(address), http.StatusUnauthorized)

	address = b.callback()
	f.clock.Step(10 * time.Minute)
	b.want("after ten minutes", b.get(address), http.StatusUnauthorized)
}

func TestIssuerIsAway(t *testing.T) {
	f := newFixture(t)
	f.issuer.Close()

	b := f.browser()
	got := b.get("/console/login/oidc")
	b.want("the login says so", got, http.StatusServiceUnavailable)

	if got.Header.Get("Retry-After") == "" || !strings.Contains(got.Body, `type="password"`) {
		t.Errorf("the page offers no other login: %s", got.Body)
	}

	b.want("passwords still work", b.logIn("vera", "v"), http.StatusSeeOther)
}

func TestRulesDecideAtEachRequest(t *testing.T) {
	f := newFixture(t)
	f.issuer.Claims["groups"] = []string{"runtimeViewer"}

	b := f.browser()
	b.logInOIDC()
	b.wantPage("the rule grants the role", "operator page of olga")

	access, err := auth.New(auth.Options{
		Address: "127.0.0.1:1", Users: users, Clock: f.clock, Log: f.options.Log, Metrics: prometheus.NewRegistry(),
		Config: auth.Config{OIDC: auth.OIDC{
			IssuerURL: f.issuer.URL, Audience: []string{"x"}, Roles: "viewer=groups:others", NameClaim: "sub", Algorithms: []string{"ES256"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}

	f.options.Access = access
	f.restart()
	b.wantPage("after a restart with another rule", "tenant page of olga")

	f.options.Config.OIDCClientID = ""
	f.restart()
	b.wantLogin("after a restart without the client")
}

func TestTooManyClaims(t *testing.T) {
	f := newFixture(t, func(_ *auth.Options, options *session.Options) { options.Config.TenantAccountClaim = "account" })

	var accounts []string
	for range 200 {
		accounts = append(accounts, "5f6c2f0e-0000-4000-8000-0123456789ab")
	}

	f.issuer.Claims["account"] = accounts

	b := f.browser()
	got := b.logInOIDC()
	b.want("the cookie would be too large", got, http.StatusForbidden)

	if !strings.Contains(got.Body, "too many groups or accounts") {
		t.Errorf("the page does not explain it: %s", got.Body)
	}
}

func TestUnverifiedMail(t *testing.T) {
	for _, test := range []struct {
		reason   string
		verified any
		owns     bool
	}{
		{"verified by the issuer", true, true},
		{"not verified", false, false},
		{"not verified, as a text", "false", false},
		{"the issuer does not say", nil, true},
	} {
		var got session.Session

		f := newFixture(t, func(_ *auth.Options, options *session.Options) { options.Config.TenantNameClaim = "email" })
		f.issuer.Claims["email"], f.issuer.Claims["email_verified"] = "olga@example.com", test.verified

		sessions, err := session.New(f.options)
		if err != nil {
			t.Fatal(err)
		}

		f.handler = sessions.Handler(http.NotFoundHandler(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = session.FromContext(r.Context())
		}))

		b := f.browser()
		b.logInOIDC()
		b.get("/console/")

		if got.Tenant.Owns("", []string{"olga@example.com"}) != test.owns {
			t.Errorf("%s: the tenant is %+v", test.reason, got.Tenant)
		}
	}
}
