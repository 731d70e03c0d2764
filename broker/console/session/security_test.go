package session_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker/console/assets"
	"github.com/environment-broker/environment-broker/broker/console/session"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestCrossSiteRequestsChangeNothing(t *testing.T) {
	b := newFixture(t).browser()
	b.logIn("vera", "v")

	for _, test := range []struct {
		reason  string
		headers []string
	}{
		{"a page of another site", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example.com"}},
		{"a page of another site in a browser without fetch metadata", []string{"Sec-Fetch-Site", "", "Origin", "https://evil.example.com"}},
		{"a page on a subdomain", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://other.127.0.0.1"}},
		{"a sandboxed frame", []string{"Sec-Fetch-Site", "", "Origin", "null"}},
		{"an unknown origin", []string{"Sec-Fetch-Site", "", "Origin", ""}},
	} {
		for _, path := range []string{"/console/logout", "/console/operations/one/cancel", "/console/login"} {
			if got := b.send(http.MethodPost, path, nil, test.headers...); got.Status != http.StatusForbidden {
				t.Errorf("%s, POST %s: want status 403, got %d %s", test.reason, path, got.Status, got.Body)
			}
		}
	}

	b.wantPage("the user is still logged in", "operator page of vera")

	if got := b.send(http.MethodPost, "/console/operations/one/cancel", nil); got.Status != http.StatusOK {
		t.Errorf("a page of the console: got %d %s", got.Status, got.Body)
	}
}

// TestRefusalsOfInvalidIDs checks that the audit log has rejected requests whose IDs PostgreSQL cannot store.
func TestRefusalsOfInvalidIDs(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixtureOn(t, db)

		for _, path := range []string{"/console/operations/a%00b/cancel", "/console/operations/%ff/retry"} {
			if got := f.browser().send(http.MethodPost, path, nil); got.Status != http.StatusUnauthorized {
				t.Errorf("POST %s: want status 401, got %d", path, got.Status)
			}
		}

		found, err := f.entries.List(t.Context(), auditlog.Filter{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}

		if len(found) != 2 || found[0].OperationID != "" || found[1].OperationID != "" {
			t.Errorf("want two entries without an ID, got %+v", found)
		}
	})
}

func TestSessionFixation(t *testing.T) {
	f := newFixture(t)
	attacker, victim := f.browser(), f.browser()

	attacker.logIn("vera", "v")
	planted := attacker.cookie().Value
	victim.setCookie(planted)

	victim.logIn("adam", "a")

	if victim.cookie().Value == planted {
		t.Error("the login keeps the cookie of an earlier session")
	}

	attacker.wantPage("the planted session stays that of the attacker", "operator page of vera")
	victim.wantPage("the victim has a session of its own", "operator page of adam")

	// The same value is sealed differently each time, so compare the IDs inside.
	ids := map[string]string{"the planted session": attacker.sessionID(), "the login with the planted cookie": victim.sessionID()}

	again := f.browser()
	again.logIn("adam", "a")
	ids["another login of the same user"] = again.sessionID()

	again.logIn("adam", "a")
	ids["another login in the same browser"] = again.sessionID()

	single := f.browser()
	single.setCookie(planted)
	single.logInOIDC()
	ids["a login at the issuer with the planted cookie"] = single.sessionID()

	first := map[string]string{}

	for reason, id := range ids {
		if id == "" {
			t.Errorf("%s: the session has no ID", reason)
		}

		if other, found := first[id]; found {
			t.Errorf("%s and %s have the session ID %s", reason, other, id)
		}

		first[id] = reason
	}
}

func TestLoginAtIssuerBelongsToBrowser(t *testing.T) {
	f := newFixture(t)
	attacker, victim := f.browser(), f.browser()

	victim.want("the login of another browser", victim.get(attacker.callback()), http.StatusUnauthorized)
	victim.wantLogin("there is no session")

	victim.callback()
	victim.want("another login of this browser is not this one", victim.get(attacker.callback()), http.StatusUnauthorized)
}

// TestStateOfLogin changes only the state of an otherwise valid response: its code, nonce, verifier and cookie belong together.
func TestStateOfLogin(t *testing.T) {
	f := newFixture(t)

	for _, test := range []struct {
		reason string
		change func(query url.Values)
		want   int
	}{
		{"the unchanged response", func(url.Values) {}, http.StatusSeeOther},
		{"another state", func(query url.Values) { query.Set("state", "AAAAAAAAAAAAAAAAAAAAAAAAAA") }, http.StatusUnauthorized},
		{"an empty state", func(query url.Values) { query.Set("state", "") }, http.StatusUnauthorized},
		{"no state", func(query url.Values) { query.Del("state") }, http.StatusUnauthorized},
		{"a part of the state", func(query url.Values) { query.Set("state", query.Get("state")[1:]) }, http.StatusUnauthorized},
		{"the state in lower case", func(query url.Values) { query.Set("state", strings.ToLower(query.Get("state"))) }, http.StatusUnauthorized},
		{"another state in front", func(query url.Values) { query["state"] = []string{"x", query.Get("state")} }, http.StatusUnauthorized},
	} {
		b := f.browser()

		address, err := url.Parse(b.callback())
		if err != nil {
			t.Fatal(err)
		}

		query := address.Query()
		test.change(query)
		address.RawQuery = query.Encode()

		if got := b.get(address.String()); got.Status != test.want {
			t.Errorf("%s: want status %d, got %d %s", test.reason, test.want, got.Status, got.Body)
		}

		if test.want != http.StatusSeeOther {
			b.wantLogin(test.reason)
		}
	}
}

// TestLoginsAtIssuerDiffer checks that state, nonce and challenge are new for each login, even in the same browser.
func TestLoginsAtIssuerDiffer(t *testing.T) {
	b := newFixture(t).browser()
	seen := map[string]bool{}

	for range 3 {
		address, err := url.Parse(b.get("/console/login/oidc").Header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}

		for _, name := range []string{"state", "nonce", "code_challenge"} {
			if value := address.Query().Get(name); len(value) < 20 || seen[value] {
				t.Errorf("the %s %q is short or was used before", name, value)
			} else {
				seen[value] = true
			}
		}
	}
}

func TestTamperedCookies(t *testing.T) {
	f := newFixture(t)
	b := f.browser()
	b.logIn("vera", "v")

	value := b.cookie().Value
	key, sealed, _ := strings.Cut(value, ":")

	content, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		t.Fatal(err)
	}

	other := f.browser()
	other.get("/console/login/oidc")

	for i := 0; i < len(content); i += 7 {
		content[i] ^= 1
		b.setCookie(key + ":" + base64.StdEncoding.EncodeToString(content))
		b.wantLogin("a flipped bit")

		content[i] ^= 1
	}

	address, err := url.Parse(b.server.URL)
	if err != nil {
		t.Fatal(err)
	}

	login := other.client.Jar.Cookies(address)[0]
	if login.Name != "console-login" {
		t.Fatalf("the cookie of a login has the name %s", login.Name)
	}

	for reason, changed := range map[string]string{
		"another key": "k2:" + sealed, "no key": sealed, "cut": value[:len(value)-4], "plain": `{"u":"adam","m":"password"}`, "long": value + strings.Repeat("A", 4000),
		"broken escape": "%zz:" + sealed, "the cookie of a login": login.Value, "only a key": key + ":",
	} {
		b.setCookie(changed)
		b.wantLogin(reason)
	}

	b.setCookie(value)
	b.wantPage("the unchanged cookie", "operator page of vera")
}

func TestCookieAttributes(t *testing.T) {
	for _, test := range []struct{ reason, public, name, attributes string }{
		{"plain HTTP", "http://broker.example.com", "console-session=", "Path=/; Max-Age=3600; HttpOnly; SameSite=Lax"},
		{"TLS", "https://broker.example.com", "__Host-console-session=", "Path=/; Max-Age=3600; HttpOnly; Secure; SameSite=Lax"},
	} {
		f := newFixture(t, func(_ *auth.Options, options *session.Options) { options.PublicURL = test.public })

		got := f.browser().logIn("vera", "v").Header.Get("Set-Cookie")
		if !strings.HasPrefix(got, test.name) || !strings.HasSuffix(got, "; "+test.attributes) {
			t.Errorf("%s: the cookie is %s", test.reason, got)
		}
	}
}

func TestHeaders(t *testing.T) {
	b := newFixture(t).browser()

	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
			"form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
		"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
	}

	replies := map[string]reply{
		"login": b.get("/console/login"), "redirect": b.get("/console/"), "asset": b.get(assets.Path("console.css")),
		"wrong password": b.logIn("vera", "x"), "refused": b.logIn("vera", "v", "Sec-Fetch-Site", "cross-site"), "logged in": b.logIn("vera", "v"),
		"page": b.get("/console/instances"), "missing asset": b.get("/console/assets/none"),
	}

	for name, got := range replies {
		for header, value := range want {
			if got.Header.Get(header) != value {
				t.Errorf("%s: the header %s is %q", name, header, got.Header.Get(header))
			}
		}

		if cached := got.Header.Get("Cache-Control"); !strings.Contains(name, "asset") && cached != "no-store" {
			t.Errorf("%s: Cache-Control is %q", name, cached)
		}
	}
}

func TestOpenRedirects(t *testing.T) {
	b := newFixture(t).browser()

	for address, allowed := range map[string]bool{
		"/console/instances?page=2": true, "/console/instances/a%2Fb": true, "/console/": true,
		"https://evil.example.com/": false, "//evil.example.com/": false, "/\\evil.example.com": false, "/console/\\..\\..": false,
		"/console//evil.example.com/../../..//x": false, "/console/../runtimes": false, "/console/%2e%2e/runtimes": false, "/runtimes": false,
		"javascript:alert(1)": false, "/console/login": false, "/console/login/oidc": false, "/console/logout": false,
		"/console/\r\nSet-Cookie: x=y": false, "/console/\t/x": false, " /console/": false, "/consolefake/": false,
		"http:/console/": false, "/console/" + strings.Repeat("a", 1100): false, "": false,
	} {
		want := "/console/"
		if allowed {
			want = address
		}

		got := b.send(http.MethodPost, "/console/login", url.Values{"user": {"vera"}, "password": {"v"}, "return": {address}}).Header.Get("Location")
		if got != want {
			t.Errorf("the form returns to %q for %q", got, address)
		}

		got = b.get("/console/login?" + url.Values{"return": {address}}.Encode()).Header.Get("Location")
		if got != want {
			t.Errorf("the login page returns to %q for %q", got, address)
		}
	}
}

func TestLoginPageEscapes(t *testing.T) {
	b := newFixture(t).browser()

	const script = `"><script>alert(1)</script>`

	for _, got := range []reply{
		b.get("/console/login?" + url.Values{"return": {"/console/?q=" + script}}.Encode()),
		b.send(http.MethodPost, "/console/login", url.Values{"user": {script}, "password": {script}, "return": {"/console/?q=" + script}}),
		b.get("/console/login/callback?" + url.Values{"error": {script}, "error_description": {script}, "state": {script}}.Encode()),
	} {
		if strings.Contains(got.Body, "<script>alert") {
			t.Errorf("the page contains a script: %s", got.Body)
		}
	}
}

func TestWithoutAuthentication(t *testing.T) {
	f := newFixture(t, func(access *auth.Options, options *session.Options) {
		access.Users, access.Config.OIDC.IssuerURL, options.Config.OIDCClientID = "", "", ""
	})

	f.browser().wantPage("no login is needed", "operator page of ")

	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/instances", http.NoBody)
	request.Host = "evil.example.com"

	recorder := httptest.NewRecorder()
	f.handler.ServeHTTP(recorder, request)

	if recorder.Code != http.StatusForbidden {
		t.Errorf("a page that has given its name a loopback address: got %d", recorder.Code)
	}
}
