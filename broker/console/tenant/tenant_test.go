package tenant_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/console/session"
	"github.com/environment-broker/environment-broker/broker/console/tenant"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeoidc"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a text that would run in a browser if a page did not escape it.
const script = `"'><script>alert(1)</script><img src=x onerror=alert(1)>`

// fixture is a broker's console with pages of tenants and of operators.
type fixture struct {
	*testing.T

	db         *storage.DB
	instances  *instances.Store
	operations *operations.Store
	entries    *auditlog.Store
	issuer     *fakeoidc.Issuer
	server     *httptest.Server
	// text describes all operations. failure is the error of all requests for kubeconfigs.
	text    string
	failure error
}

func newFixture(t *testing.T) *fixture {
	t.Helper()

	f := &fixture{T: t, db: storagetest.SQLite(t), text: "Creating the cluster: 40 %"}

	var (
		handler http.Handler
		err     error
	)

	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(f.server.Close)

	if f.issuer, err = fakeoidc.New("console", f.server.URL+"/console/login/callback", nil); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(f.issuer.Close)

	keys := storagetest.Keys(t)

	var errs [4]error

	f.entries, errs[0] = auditlog.Open(t.Context(), f.db, time.Hour)
	f.instances, errs[1] = instances.Open(t.Context(), f.db, keys)
	f.operations, errs[2] = operations.Open(t.Context(), f.db, keys)

	config := auth.Default()
	config.OIDC.IssuerURL, config.OIDC.Audience = f.issuer.URL, []string{"environment-broker"}

	access, err := auth.New(auth.Options{
		Address: "127.0.0.1:1", Users: "viewer:v:viewer,operator:o:operator,admin:a:admin,osb:o:osb", Config: config, Clock: clock.RealClock{},
		Log: logging.Discard(), Metrics: prometheus.NewRegistry(),
	})
	errs[3] = err

	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}

	settings := session.DefaultConfig()
	settings.OIDCClientID, settings.TenantNameClaim, settings.TenantAccountClaim = "console", "email", "account"

	sessions, err := session.New(session.Options{
		Config: settings, Keys: keys, Access: access, NameClaim: "sub", PublicURL: f.server.URL, Clock: clock.RealClock{}, Log: logging.Discard(),
		Recorder: audit.NewRecorder(f.entries, f.db, clock.RealClock{}, logging.Discard()),
	})
	if err != nil {
		t.Fatal(err)
	}

	pages := tenant.New(tenant.Options{
		DB: f.db, Instances: f.instances, Operations: f.operations, Clock: clock.RealClock{}, Log: logging.Discard(),
		Describe:   func(process.Record, string) (string, int) { return f.text, 40 },
		Kubeconfig: func(_ context.Context, id string) ([]byte, error) { return []byte("kubeconfig of " + id), f.failure },
	})

	handler = sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "operators") }), pages)

	return f
}

// add stores an instance with the given account and administrators, and the operation that creates it.
func (f *fixture) add(id, account string, state process.State, administrators ...string) {
	f.Helper()

	instance := environment.Instance{
		ID: id, PlanID: "plan", PlanName: "aws", GlobalAccountID: account, Name: "name of " + id, ShootName: "c-" + uuid.NewString()[:8], Region: "eu-central-1",
		RuntimeID: "runtime", CreatedAt: time.Now(), UpdatedAt: time.Now(),
	}
	instance.Request.Cluster.Administrators = administrators

	operationID := uuid.NewString()

	if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
		if err := storagetest.Insert(f.Context(), tx, f.instances, instance); err != nil {
			return err
		}

		return f.operations.Accept(f.Context(), tx, process.New{
			ID: operationID, Kind: environment.KindProvision, InstanceID: id, Tenant: account, Payload: json.RawMessage(`{}`), At: time.Now(),
		})
	}); err != nil {
		f.Fatal(err)
	}

	claimed := storagetest.Claim(f, f.operations, process.Claim{
		Owner: "replica", Limit: 1, Now: time.Now(), Until: time.Now().Add(time.Hour),
	}, environment.KindProvision)
	if len(claimed) != 1 {
		f.Fatalf("claimed %d operations", len(claimed))
	}

	progress := process.Progress{Record: claimed[0].Record, Now: time.Now(), Release: state.Terminal()}
	progress.Record.State, progress.Record.NextRun = state, time.Now().Add(time.Hour)

	if state.Terminal() {
		progress.Record.FinishedAt = time.Now()
	}

	if _, err := f.operations.Save(f.Context(), progress); err != nil {
		f.Fatal(err)
	}
}

type client struct {
	*fixture

	http.Client
}

// client returns a browser that follows redirects. With claims, it logs in at the issuer. With only a user name, it logs in with
// a password, which is the first letter of the name. With neither, it does not log in.
func (f *fixture) client(user string, claims map[string]any) client {
	f.Helper()

	jar, err := cookiejar.New(nil)
	if err != nil {
		f.Fatal(err)
	}

	c := client{f, http.Client{Jar: jar, Timeout: time.Minute}}

	switch {
	case claims != nil:
		f.issuer.Claims = claims
		c.get("/console/login/oidc")
	case user != "":
		request, err := http.NewRequestWithContext(f.Context(), http.MethodPost, f.server.URL+"/console/login",
			strings.NewReader(url.Values{"user": {user}, "password": {user[:1]}}.Encode()))
		if err != nil {
			f.Fatal(err)
		}

		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", f.server.URL)
		c.do(request)
	}

	return c
}

func (c client) get(path string) (status int, body string) {
	c.Helper()

	request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, c.server.URL+path, http.NoBody)
	if err != nil {
		c.Fatal(err)
	}

	request.Header.Set("Sec-Fetch-Dest", "empty") // no redirect to the login
	if strings.Contains(path, "/login") {
		request.Header.Del("Sec-Fetch-Dest")
	}

	return c.do(request)
}

func (c client) do(request *http.Request) (status int, body string) {
	c.Helper()

	response, err := c.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()

	content, err := io.ReadAll(response.Body)
	if err != nil {
		c.Fatal(err)
	}

	return response.StatusCode, string(content)
}

// TestAccess requests each page as each kind of user. Operators get their own pages at all paths.
func TestAccess(t *testing.T) {
	f := newFixture(t)
	f.add("mine", "ga1", process.Succeeded, "joe@example.com", "olga@example.com")
	f.add("other", "ga2", process.Succeeded, "bob@example.com")
	f.add("nobody", "", process.Succeeded)

	const (
		ok, missing, login, denied, operators = "200", "404", "401", "403", "operators"
	)

	paths := []string{
		"/console/", "/console/instances/mine", "/console/instances/mine/kubeconfig", "/console/instances/other", "/console/instances/other/kubeconfig",
		"/console/instances/nobody", "/console/instances/none", "/console/instances/none/kubeconfig", "/console/instances", "/console/operations/one",
		"/console/audit", "/console/instances/mine/cancel", "/console/instances/%00", "/console/live",
	}

	for _, user := range []struct {
		reason, name string
		claims       map[string]any
		want         []string
	}{
		{"without a login", "", nil, []string{login, login, login, login, login, login, login, login, login, login, login, login, login, login}},
		{"a platform", "osb", nil, []string{login, login, login, login, login, login, login, login, login, login, login, login, login, login}},
		{"a viewer", "viewer", nil, []string{
			operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators,
		}},
		{"an operator", "operator", nil, []string{
			operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators,
		}},
		{"an admin", "admin", nil, []string{
			operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators,
		}},
		{"an administrator of the instance", "", map[string]any{"sub": "1", "email": "olga@example.com"}, []string{
			ok, ok, ok, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing,
		}},
		{"a user of the account", "", map[string]any{"sub": "2", "account": []string{"ga0", "ga1"}}, []string{
			ok, ok, ok, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing,
		}},
		{"a user of another account", "", map[string]any{"sub": "3", "email": "bob@example.com", "account": "ga3"}, []string{
			ok, missing, missing, ok, ok, missing, missing, missing, missing, missing, missing, missing, missing, missing,
		}},
		{"an administrator by a claim that does not count", "", map[string]any{"sub": "olga@example.com", "name": "olga@example.com", "account": "olga@example.com"}, []string{
			ok, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing,
		}},
		{"an unverified address of mail", "", map[string]any{"sub": "4", "email": "olga@example.com", "email_verified": false}, []string{
			ok, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing,
		}},
		{"a user without claims", "", map[string]any{"sub": "5", "account": ""}, []string{
			ok, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing, missing,
		}},
		{"a role at the issuer", "", map[string]any{"sub": "6", "groups": "runtimeViewer"}, []string{
			operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators, operators,
		}},
	} {
		c := f.client(user.name, user.claims)

		for i, path := range paths {
			status, body := c.get(path)
			got := map[int]string{200: ok, 404: missing, 401: login, 403: denied}[status]

			if body == operators {
				got = operators
			}

			if got != user.want[i] {
				t.Errorf("%s, %s: want %s, got %d %s", user.reason, path, user.want[i], status, body)
			}

			if got == missing && strings.Contains(body, "name of") {
				t.Errorf("%s, %s: the page names the instance: %s", user.reason, path, body)
			}
		}
	}
}

// TestManyInstances lists more instances of two accounts than a page of the home page shows. The accounts alternate, and all instances
// have the same creation time, so only the IDs determine the order.
func TestManyInstances(t *testing.T) {
	f := newFixture(t)

	want := map[string]int{}

	for i := range 130 {
		id := fmt.Sprintf("i-%03d", i)
		want[tenant.Address(id)] = 1
		f.add(id, []string{"acme", "more"}[i%2], process.Succeeded)
	}

	f.add("foreign", "other", process.Succeeded)

	if _, err := storage.Exec(t.Context(), f.db.Writer(), `UPDATE instances SET created_at = ?`, storage.At(time.Now())); err != nil {
		t.Fatal(err)
	}

	c := f.client("", map[string]any{"sub": "s", "email": "alice@example.com", "account": []string{"acme", "more"}})
	got, path := map[string]int{}, session.Home

	for page, length := range []int{100, 30} {
		status, body := c.get(path)
		if status != http.StatusOK {
			t.Fatalf("%s: status %d", path, status)
		}

		links := regexp.MustCompile(`href="(/console/instances/[^"]+)"`).FindAllStringSubmatch(body, -1)
		for _, link := range links {
			got[link[1]]++
		}

		_, after, more := strings.Cut(body, `rel="next" href="`)
		path, _, _ = strings.Cut(after, `"`)

		if len(links) != length || more != (page == 0) || strings.Contains(body, "First page") != (page == 1) {
			t.Errorf("page %d has %d links, next page: %t", page, len(links), more)
		}
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("each instance is on one page: -want +got\n%s", diff)
	}

	if status, body := c.get(session.Home + "?cursor=x"); status != http.StatusBadRequest || !strings.Contains(body, "Start with the first page") {
		t.Errorf("an invalid cursor: status %d, %s", status, body)
	}
}

func TestMissingAndForeignLookTheSame(t *testing.T) {
	f := newFixture(t)
	f.add("other", "ga2", process.Succeeded, "bob@example.com")

	c := f.client("", map[string]any{"sub": "olga"})
	_, missing := c.get("/console/instances/none")
	_, foreign := c.get("/console/instances/other")

	if missing != foreign {
		t.Errorf("the pages differ: %s and %s", missing, foreign)
	}

	found, err := f.entries.List(t.Context(), auditlog.Filter{InstanceID: "other", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}

	if len(found) != 1 || found[0].Code != "OtherTenant" || found[0].Status != http.StatusNotFound || found[0].By.User != "olga" {
		t.Errorf("the audit log has %+v", found)
	}
}

func TestInstancePage(t *testing.T) {
	f := newFixture(t)
	f.add("running", "ga1", process.InProgress)
	f.add("ready", "ga1", process.Succeeded)
	f.add("failed", "ga1", process.Failed)

	c := f.client("", map[string]any{"sub": "olga", "account": "ga1"})

	for path, test := range map[string]struct{ contains, lacks []string }{
		"/console/": {contains: []string{`<a href="/console/instances/ready">name of ready</a>`, "olga"}},
		"/console/instances/running": {
			contains: []string{`hx-trigger="every 2s"`, "Creating the cluster: 40 %", `value="40"`, "creating", "aws", "eu-central-1"}, lacks: []string{"kubeconfig"},
		},
		"/console/instances/ready":  {contains: []string{"active", `href="/console/instances/ready/kubeconfig"`}, lacks: []string{"hx-trigger", "<progress"}},
		"/console/instances/failed": {contains: []string{"creation failed", "Creating the cluster: 40 %"}, lacks: []string{"hx-trigger", "kubeconfig"}},
	} {
		_, body := c.get(path)

		for _, text := range test.contains {
			if !strings.Contains(body, text) {
				t.Errorf("%s lacks %q: %s", path, text, body)
			}
		}

		for _, text := range test.lacks {
			if strings.Contains(body, text) {
				t.Errorf("%s has %q: %s", path, text, body)
			}
		}
	}
}

// TestStateDuringAnOperation checks that the state of a suspended or expired instance names the operation that is changing it. Until a
// resumption has succeeded, the row of the instance still says that it is suspended.
func TestStateDuringAnOperation(t *testing.T) {
	for name, test := range map[string]struct {
		suspended, expired bool
		kind               string
		ended              process.State
		want               string
	}{
		"suspended":                         {suspended: true, want: "suspended"},
		"resumption":                        {suspended: true, kind: environment.KindResume, want: "resuming"},
		"failed resumption":                 {suspended: true, kind: environment.KindResume, ended: process.Failed, want: "resumption failed"},
		"deletion of a suspended instance":  {suspended: true, kind: environment.KindDeprovision, want: "deleting"},
		"deletion of an expired instance":   {expired: true, kind: environment.KindDeprovision, want: "deleting"},
		"failed deletion":                   {expired: true, kind: environment.KindDeprovision, ended: process.Failed, want: "deletion failed"},
		"suspension of an expired instance": {expired: true, kind: environment.KindSuspend, want: "expired"},
		"update of a suspended instance":    {suspended: true, kind: environment.KindUpdate, want: "suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.add("one", "ga1", process.Succeeded)
			f.mark("one", test.suspended, test.expired)

			if test.kind != "" {
				f.change("one", test.kind, test.ended)
			}

			_, body := f.client("", map[string]any{"sub": "olga", "account": "ga1"}).get("/console/instances/one")

			badge := regexp.MustCompile(`role="status"><span class="badge[^"]*">([^<]*)<`).FindStringSubmatch(body)
			if len(badge) != 2 || badge[1] != test.want {
				t.Errorf("the state is %q, want %q: %s", badge, test.want, body)
			}
		})
	}
}

// mark makes an instance suspended or expired.
func (f *fixture) mark(id string, suspended, expired bool) {
	f.Helper()

	at := storage.Time{}
	if expired {
		at = storage.At(time.Now())
	}

	if _, err := storage.Exec(f.Context(), f.db.Writer(), `UPDATE instances SET suspended = ?, expired_at = ? WHERE id = ?`, suspended, at, id); err != nil {
		f.Fatal(err)
	}
}

// change adds an operation to an instance. It is pending if ended is empty.
func (f *fixture) change(id, kind string, ended process.State) {
	f.Helper()

	operation := process.New{
		ID: uuid.NewString(), Kind: kind, InstanceID: id, Tenant: "ga1", Payload: json.RawMessage(`{}`), At: time.Now(),
	}

	if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
		if ended == "" {
			return f.operations.Accept(f.Context(), tx, operation)
		}

		return f.operations.InsertEnded(f.Context(), tx, operation, operations.Ending{State: ended, Began: time.Now(), At: time.Now()})
	}); err != nil {
		f.Fatal(err)
	}
}

// TestExpired checks that the page of an expired instance says when it expired, not that it expires now.
func TestExpired(t *testing.T) {
	f := newFixture(t)
	f.add("expired", "ga1", process.Succeeded)

	at := storage.At(time.Now().Add(-time.Hour))
	if _, err := storage.Exec(t.Context(), f.db.Writer(), `UPDATE instances SET expires_at = ?, expired_at = ?`, at, at); err != nil {
		t.Fatal(err)
	}

	_, body := f.client("", map[string]any{"sub": "olga", "account": "ga1"}).get("/console/instances/expired")
	if !strings.Contains(body, "<dt>Expired</dt>") || strings.Contains(body, "<dt>Expires</dt>") {
		t.Errorf("the page does not say when the instance expired: %s", body)
	}
}

// TestPageOfReusedID checks that the page of an instance shows no operation of a deleted instance with the same ID.
func TestPageOfReusedID(t *testing.T) {
	f := newFixture(t)

	deleted := time.Now().Add(-time.Minute)
	if err := f.db.InTx(t.Context(), func(tx storage.Tx) error {
		return f.operations.InsertEnded(t.Context(), tx, process.New{
			ID: "before", Kind: environment.KindDeprovision, InstanceID: "reused", Tenant: "ga2", Payload: json.RawMessage(`{}`), At: deleted,
		}, operations.Ending{State: process.Succeeded, Began: deleted, At: deleted})
	}); err != nil {
		t.Fatal(err)
	}

	f.add("reused", "ga1", process.Succeeded)

	_, body := f.client("", map[string]any{"sub": "olga", "account": "ga1"}).get("/console/instances/reused")
	if strings.Contains(body, "Deletion") || !strings.Contains(body, "Creation") {
		t.Errorf("the page should list the creation only: %s", body)
	}
}

func TestTextsAreEscaped(t *testing.T) {
	f := newFixture(t)
	f.text = script
	f.add(script, "ga1", process.Failed, script)
	f.add("two"+script, "ga1", process.InProgress)

	c := f.client("", map[string]any{"sub": script, "account": "ga1"})

	for _, path := range []string{"/console/", tenant.Address(script), tenant.Address("two" + script), "/console/" + url.PathEscape(script)} {
		status, body := c.get(path)
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") || status != http.StatusOK && !strings.HasPrefix(path, "/console/%22") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestKubeconfig(t *testing.T) {
	f := newFixture(t)
	f.add("a/b", "ga1", process.Succeeded)

	c := f.client("", map[string]any{"sub": "olga", "account": "ga1"})

	if status, body := c.get("/console/instances/a%2Fb/kubeconfig"); status != http.StatusOK || body != "kubeconfig of a/b" {
		t.Errorf("the kubeconfig is %d %s", status, body)
	}

	f.failure = httpserver.Refuse(http.StatusNotFound, "not ready")
	if status, _ := c.get("/console/instances/a%2Fb/kubeconfig"); status != http.StatusNotFound {
		t.Errorf("without a kubeconfig: %d", status)
	}

	f.failure = errors.New("secret cause")
	if status, body := c.get("/console/instances/a%2Fb/kubeconfig"); status != http.StatusInternalServerError || strings.Contains(body, "secret") {
		t.Errorf("after a failure: %d %s", status, body)
	}
}
