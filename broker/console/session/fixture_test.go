package session_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/console/session"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeoidc"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.MainWithoutLeaks(m) }

const users = "vera:v:viewer,adam:a:admin,cf:c:osb"

// fixture is a console whose pages contain the name of the client.
type fixture struct {
	*testing.T

	options session.Options
	clock   *clocktesting.FakeClock
	entries *auditlog.Store
	db      *storage.DB
	issuer  *fakeoidc.Issuer
	server  *httptest.Server
	handler http.Handler
}

// newFixture starts a console with an SQLite database. The functions change the options of auth and of the sessions.
func newFixture(t *testing.T, change ...func(*auth.Options, *session.Options)) *fixture {
	t.Helper()

	return newFixtureOn(t, storagetest.SQLite(t), change...)
}

// newFixtureOn starts a console with the given database.
func newFixtureOn(t *testing.T, db *storage.DB, change ...func(*auth.Options, *session.Options)) *fixture {
	t.Helper()

	f := &fixture{T: t, clock: clocktesting.NewFakeClock(time.Now()), db: db}

	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.handler.ServeHTTP(w, r) }))
	t.Cleanup(f.server.Close)

	var err error
	if f.issuer, err = fakeoidc.New("console", f.server.URL+"/console/login/callback", map[string]any{"sub": "olga"}); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(f.issuer.Close)

	if f.entries, err = auditlog.Open(t.Context(), f.db, time.Hour); err != nil {
		t.Fatal(err)
	}

	access := auth.Options{
		Address: "127.0.0.1:1", Users: users, Config: auth.Default(), Clock: f.clock, Log: logging.Discard(), Metrics: prometheus.NewRegistry(),
	}
	access.Config.OIDC.IssuerURL, access.Config.OIDC.Audience = f.issuer.URL, []string{"environment-broker"}

	f.options = session.Options{
		Config: session.DefaultConfig(), Keys: storagetest.Keys(t), NameClaim: "sub", PublicURL: f.server.URL, Clock: f.clock,
		Log: logging.Discard(), Recorder: audit.NewRecorder(f.entries, f.db, f.clock, logging.Discard()),
	}
	f.options.Config.OIDCClientID = "console"

	for _, apply := range change {
		apply(&access, &f.options)
	}

	if f.options.Access, err = auth.New(access); err != nil {
		t.Fatal(err)
	}

	f.restart()

	return f
}

// restart replaces the sessions, as a restart of the replica does.
func (f *fixture) restart() {
	f.Helper()

	sessions, err := session.New(f.options)
	if err != nil {
		f.Fatal(err)
	}

	page := func(kind string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			client := auth.FromContext(r.Context())
			_, _ = io.WriteString(w, kind+" page of "+client.Name+" with "+strings.Join(session.FromContext(r.Context()).Tenant.Accounts, "+"))
		})
	}

	f.handler = sessions.Handler(page("operator"), page("tenant"))
}

// browser keeps cookies and follows no redirects.
type browser struct {
	*fixture

	client *http.Client
}

func (f *fixture) browser() browser {
	f.Helper()

	jar, err := cookiejar.New(nil)
	if err != nil {
		f.Fatal(err)
	}

	return browser{f, &http.Client{
		Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

type reply struct {
	Status int
	Header http.Header
	Body   string
}

// send sends a request. headers alternates between names and values.
func (b browser) send(method, address string, form url.Values, headers ...string) reply {
	b.Helper()

	if strings.HasPrefix(address, "/") {
		address = b.server.URL + address
	}

	request, err := http.NewRequestWithContext(b.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}

	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", b.server.URL)
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}

	for pair := range slices.Chunk(headers, 2) {
		request.Header.Del(pair[0])

		if pair[1] != "" {
			request.Header.Set(pair[0], pair[1])
		}
	}

	response, err := b.client.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()

	content, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}

	return reply{response.StatusCode, response.Header, string(content)}
}

func (b browser) get(address string, headers ...string) reply {
	b.Helper()

	return b.send(http.MethodGet, address, nil, headers...)
}

// logIn logs in with a password, and returns the response.
func (b browser) logIn(user, password string, headers ...string) reply {
	b.Helper()

	return b.send(http.MethodPost, "/console/login", url.Values{"user": {user}, "password": {password}, "return": {"/console/instances"}}, headers...)
}

// logInOIDC logs in at the issuer, and returns the response to the callback.
func (b browser) logInOIDC() reply {
	b.Helper()

	return b.get(b.callback())
}

// callback begins a login at the issuer and returns the address to which the issuer sends the browser.
func (b browser) callback() string {
	b.Helper()

	begun := b.get("/console/login/oidc?return=%2Fconsole%2Finstances%2Fone")
	b.want("the browser goes to the issuer", begun, http.StatusSeeOther)

	authorized := b.get(begun.Header.Get("Location"))
	b.want("the issuer sends the browser back", authorized, http.StatusFound)

	return authorized.Header.Get("Location")
}

func (f *fixture) want(reason string, got reply, status int) {
	f.Helper()

	if got.Status != status {
		f.Fatalf("%s: want status %d, got %d %s", reason, status, got.Status, got.Body)
	}
}

// wantPage fails the test unless the browser gets the page of an operator or a tenant.
func (b browser) wantPage(reason, want string) {
	b.Helper()

	if got := b.get("/console/instances"); got.Status != http.StatusOK || !strings.HasPrefix(got.Body, want) {
		b.Errorf("%s: want %q, got %d %s", reason, want, got.Status, got.Body)
	}
}

// wantLogin fails the test unless the browser has to log in.
func (b browser) wantLogin(reason string) {
	b.Helper()

	if got := b.get("/console/instances"); got.Status != http.StatusSeeOther || got.Header.Get("Location") != "/console/login?return=%2Fconsole%2Finstances" {
		b.Errorf("%s: want a redirect to the login, got %d %s", reason, got.Status, got.Header)
	}
}

// cookie returns the session cookie of the browser, or nil.
func (b browser) cookie() *http.Cookie {
	b.Helper()

	address, err := url.Parse(b.server.URL)
	if err != nil {
		b.Fatal(err)
	}

	for _, each := range b.client.Jar.Cookies(address) {
		if strings.HasSuffix(each.Name, "console-session") {
			return each
		}
	}

	return nil
}

// sessionID returns the ID in the session cookie of the browser.
func (b browser) sessionID() string {
	b.Helper()

	key, sealed, _ := strings.Cut(b.cookie().Value, ":")

	key, err := url.QueryUnescape(key)
	if err != nil {
		b.Fatal(err)
	}

	content, err := b.options.Keys.Open(key+":"+sealed, "cookie console-session")
	if err != nil {
		b.Fatal(err)
	}

	var session struct {
		ID string `json:"i"`
	}

	if err := json.Unmarshal(content, &session); err != nil {
		b.Fatal(err)
	}

	return session.ID
}

func (b browser) setCookie(value string) {
	b.Helper()

	address, err := url.Parse(b.server.URL)
	if err != nil {
		b.Fatal(err)
	}

	b.client.Jar.SetCookies(address, []*http.Cookie{{Name: "console-session", Value: value, Path: "/"}})
}

// actions returns the entries of the audit log as action, user and status. They are sorted by text, because their times are equal.
func (f *fixture) actions() []string {
	f.Helper()

	found, err := f.entries.List(f.Context(), auditlog.Filter{Limit: 100})
	if err != nil {
		f.Fatal(err)
	}

	var texts []string
	for _, each := range found {
		texts = append(texts, strings.Join([]string{each.Action, each.By.User, http.StatusText(each.Status)}, " "))
	}

	slices.Sort(texts)

	return texts
}

// keys returns a key ring with the given keys. The first one encrypts.
func (f *fixture) keys(keys ...secret.String) *secret.Keyring {
	f.Helper()

	var texts []string
	for _, key := range keys {
		texts = append(texts, key.Reveal())
	}

	ring, err := secret.ParseKeyring(secret.String(strings.Join(texts, ",")))
	if err != nil {
		f.Fatal(err)
	}

	return ring
}
