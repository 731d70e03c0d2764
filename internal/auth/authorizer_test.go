package auth_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/auth"
)

func TestPasswordRotation(t *testing.T) {
	fixed, err := auth.ParseUsers("cf:old,watcher:w:viewer")
	if err != nil {
		t.Fatal(err)
	}

	file, err := auth.ParseUserFile([]byte("# platforms\r\ncf:new\n\n  admin:a:admin  \n"))
	if err != nil {
		t.Fatal(err)
	}

	all, err := fixed.And(file)
	if err != nil {
		t.Fatal(err)
	}

	for _, pair := range []string{"cf old", "cf new", "watcher w", "admin a"} {
		name, password, _ := strings.Cut(pair, " ")
		if identity, found := all.Find(name, password); !found || identity.Name != name {
			t.Errorf("%s is rejected", pair)
		}
	}

	if _, found := fixed.Find("cf", "new"); found {
		t.Error("And changed its receiver")
	}

	other, err := auth.ParseUserFile([]byte("cf:third:admin"))
	if err != nil {
		t.Fatal(err)
	}

	if _, err := fixed.And(other); err == nil {
		t.Error("a second password with other roles is accepted")
	}

	if _, err := auth.ParseUserFile([]byte("# nobody\n")); err == nil {
		t.Error("a file without users is accepted")
	}

	if _, err := auth.ParseUserFile([]byte("good:1\n# comment\nhush")); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("the error does not name the line: %v", err)
	}
}

func certificate(t *testing.T) *x509.Certificate {
	t.Helper()

	spiffe, err := url.Parse("spiffe://cluster.local/ns/platform")
	if err != nil {
		t.Fatal(err)
	}

	return &x509.Certificate{
		Subject: pkix.Name{CommonName: "cf", OrganizationalUnit: []string{"operators"}}, URIs: []*url.URL{spiffe},
		SerialNumber: big.NewInt(255), NotAfter: now.Add(time.Hour),
	}
}

func TestCertificates(t *testing.T) {
	cases := map[string]struct {
		reason  string
		change  func(*x509.Certificate)
		want    auth.Identity
		wantErr bool
	}{
		"Parts": {
			reason: "attributes of the certificate grant roles", change: func(*x509.Certificate) {},
			want: auth.Identity{Name: "cf", Means: auth.ByCertificate, Roles: []auth.Role{auth.RoleOSB, auth.RoleOperator, auth.RoleViewer}},
		},
		"Other": {
			reason: "a certificate with a different name has no role", want: auth.Identity{Name: "other", Means: auth.ByCertificate},
			change: func(c *x509.Certificate) { c.Subject, c.URIs = pkix.Name{CommonName: "other"}, nil },
		},
		"NoCommonName": {
			reason: "the name of a workload is a URI", want: auth.Identity{Name: "spiffe://cluster.local/ns/platform", Means: auth.ByCertificate, Roles: []auth.Role{auth.RoleViewer}},
			change: func(c *x509.Certificate) { c.Subject = pkix.Name{} },
		},
		"SeveralNames": {
			reason: "a URI identifies a workload better than the host that it runs on",
			want:   auth.Identity{Name: "spiffe://cluster.local/ns/platform", Means: auth.ByCertificate, Roles: []auth.Role{auth.RoleViewer}},
			change: func(c *x509.Certificate) {
				c.Subject, c.DNSNames, c.EmailAddresses = pkix.Name{}, []string{"node-7.example.com"}, []string{"jane@example.com"}
			},
		},
		"NoURI": {
			reason: "a host name comes before an address of a person", want: auth.Identity{Name: "node-7.example.com", Means: auth.ByCertificate},
			change: func(c *x509.Certificate) {
				c.Subject, c.URIs = pkix.Name{}, nil
				c.DNSNames, c.EmailAddresses = []string{"node-7.example.com"}, []string{"jane@example.com"}
			},
		},
		"NoName": {
			reason: "a certificate without any name is named by its serial number", want: auth.Identity{Name: "ff", Means: auth.ByCertificate},
			change: func(c *x509.Certificate) { c.Subject, c.URIs = pkix.Name{}, nil },
		},
		"Expired": {
			reason: "a connection may last longer than its certificate", wantErr: true,
			change: func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Second) },
		},
	}

	rules, err := auth.ParseRules("osb=cn:cf, operator=ou:operators, viewer=uri:spiffe://cluster.local/ns/platform")
	if err != nil {
		t.Fatal(err)
	}

	authenticator := auth.Certificates{Rules: rules, Clock: clocktesting.NewFakePassiveClock(now)}

	for name, test := range cases {
		shown := certificate(t)
		test.change(shown)

		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{shown}}

		if _, err := authenticator.Authenticate(request); !errors.Is(err, auth.ErrNoCredentials) {
			t.Errorf("%s: an unverified certificate is accepted: %v", name, err)
		}

		request.TLS.VerifiedChains = [][]*x509.Certificate{{shown}}

		got, err := authenticator.Authenticate(request)
		if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(auth.Identity{}, "Attributes")); diff != "" {
			t.Errorf("%s: %s: -want +got\n%s", name, test.reason, diff)
		}

		if _, rejected := errors.AsType[*auth.Rejection](err); rejected != test.wantErr {
			t.Errorf("%s: %s: %v", name, test.reason, err)
		}
	}
}

func TestParseRulesReportsAllErrors(t *testing.T) {
	_, err := auth.ParseRules("osb=cn:a,boss=cn:a,osb=cn,osb,osb=cn:%zz")
	if err == nil {
		t.Fatal("want errors, got none")
	}

	want := strings.Join([]string{
		`rule 2: the role "boss" is unknown: use osb, viewer, operator or admin`,
		"rule 3: it must have the form role=attribute:value",
		"rule 4: it must have the form role=attribute:value",
		"rule 5: the percent-encoding of the value is invalid",
	}, "\n")
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("errors: -want +got\n%s", diff)
	}

	if err := auth.CheckCertificateRules(auth.Rules{{Role: auth.RoleOSB, Attribute: "scope", Value: "a"}}); err == nil {
		t.Error("a rule for scopes of certificates is accepted")
	}
}

func TestHeaderTakesPrecedenceOverCertificate(t *testing.T) {
	users, err := auth.ParseUsers("admin:a:admin")
	if err != nil {
		t.Fatal(err)
	}

	rules := auth.Rules{{Role: auth.RoleOSB, Attribute: "cn", Value: "cf"}}
	authenticator := auth.AnyOf{users, auth.Certificates{Rules: rules, Clock: clocktesting.NewFakePassiveClock(now)}}

	cases := map[string]struct {
		reason, password, want string
		rejected               bool
	}{
		"NoHeader": {reason: "without a header the certificate identifies the client", want: "cf"},
		"Right":    {reason: "a password identifies its user", password: "a", want: "admin"},
		"Wrong":    {reason: "a valid certificate does not outweigh a wrong password", password: "b", rejected: true},
	}

	for name, test := range cases {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		request.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate(t)}}}

		if test.password != "" {
			request.SetBasicAuth("admin", test.password)
		}

		identity, err := authenticator.Authenticate(request)
		if _, rejected := errors.AsType[*auth.Rejection](err); identity.Name != test.want || rejected != test.rejected {
			t.Errorf("%s: %s: got %q, %v", name, test.reason, identity.Name, err)
		}
	}
}

func TestLimits(t *testing.T) {
	users, err := auth.ParseUsers("one:1:viewer,other:2:viewer")
	if err != nil {
		t.Fatal(err)
	}

	clock := clocktesting.NewFakePassiveClock(now)

	limits, err := auth.NewLimiter(1, 2, clock)
	if err != nil {
		t.Fatal(err)
	}

	refused := map[string]int{}
	authorizer := &auth.Authorizer{Authenticator: users, Limits: limits, Refused: func(reason string) { refused[reason]++ }}
	endpoint := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	protected, public := authorizer.Require(auth.RoleViewer)(endpoint), authorizer.Public(endpoint)

	send := func(handler http.Handler, user, password, address string) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		request.RemoteAddr = address

		if user != "" {
			request.SetBasicAuth(user, password)
		}

		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)

		return recorder
	}

	for number, test := range []struct {
		reason                  string
		handler                 http.Handler
		user, password, address string
		pass                    time.Duration
		want                    int
	}{
		{"the first request", protected, "one", "1", "10.0.0.1:1", 0, 200},
		{"the burst is per user and not per address", protected, "one", "1", "10.0.0.2:1", 0, 200},
		{"too many requests", protected, "one", "1", "10.0.0.1:1", 0, 429},
		{"a rejected request takes no token", protected, "one", "1", "10.0.0.1:1", time.Second, 200},
		{"another user has a separate bucket", protected, "other", "2", "10.0.0.1:1", 0, 200},
		{"clients without an identity are distinguished by address", public, "", "", "10.0.0.1:1", 0, 200},
		{"a different port is the same client", public, "", "", "10.0.0.1:2", 0, 200},
		{"too many requests from one address", public, "", "", "10.0.0.1:3", 0, 429},
		{"a wrong password does not use up the user's rate limit", protected, "other", "9", "10.0.0.1:1", 0, 401},
		{"the other user is not affected", protected, "other", "2", "10.0.0.1:1", 0, 200},
	} {
		clock.SetTime(clock.Now().Add(test.pass))

		got := send(test.handler, test.user, test.password, test.address)
		if got.Code != test.want {
			t.Errorf("request %d: %s: want %d, got %d", number+1, test.reason, test.want, got.Code)
		}

		if limited := got.Code == http.StatusTooManyRequests; limited != (got.Header().Get("Retry-After") == "1") {
			t.Errorf("request %d: Retry-After is %q", number+1, got.Header().Get("Retry-After"))
		}
	}

	if diff := cmp.Diff(map[string]int{auth.RateLimited: 2, auth.Unauthenticated: 1}, refused); diff != "" {
		t.Errorf("counted: -want +got\n%s", diff)
	}
}
