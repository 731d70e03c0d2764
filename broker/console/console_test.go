package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestPages requests each page, on both databases.
func TestPages(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixtureOn(t, db)
		f.instance("a/b", process.InProgress, func(i *environment.Instance) { i.Name = "<script>alert(1)</script>" })
		f.instance("c", process.Failed)

		for path, wants := range map[string][]string{
			"/console/instances":               {"name-c", "&lt;script&gt;alert(1)", "/console/instances/a%2Fb", "provisioning", "create_runtime"},
			"/console/instances/a%2Fb":         {"&lt;script&gt;alert(1)", "&#34;sent&#34;", "runtime-a/b", "op-a%2Fb", "The instance has no bindings.", "With all defaults"},
			"/console/operations":              {"name-c", "no quota for &lt;vpc&gt;"},
			"/console/operations/op-a%2Fb":     {"Order", "Orders the runtime.", "attempt 3", "the cluster is being created", "next attempt", "in 19s", "Next: Probe", "Interventions need the operator role."},
			"/console/operations/op-c":         {"no quota for &lt;vpc&gt;", "ebctl operation retry op-c --reason REASON", "gardener: ERR_QUOTA"},
			"/console/operations?stuck=":       {"name-c"},
			"/console/operations?kind=bind":    {"No operation matches.", "0 operations on this page"},
			"/console/operations?state=failed": {"1 operation on this page"},
			"/console/": {
				">2</span>", "Instances by state", "gardener: ERR_QUOTA: 1", `aria-label="Failed operations by error: gardener: ERR_QUOTA 1"`, "No operation is stuck.",
			},
			"/console/orchestrations": {"There are no orchestrations."},
			"/console/catalog":        {"aws", "regions", "/console/instances?plan=aws", "/console/catalog/361c511f-f939-4621-b228-d0fb79a1fe15"},
			"/console/systems":        {"provisioner", "closed", "0 of 7"},
		} {
			html := f.page(path, http.StatusOK)
			for _, want := range wants {
				if !strings.Contains(html, want) {
					t.Errorf("%s lacks %s:\n%s", path, want, html)
				}
			}
		}

		for _, path := range []string{"/console/instances/none", "/console/operations/none", "/console/none"} {
			f.page(path, http.StatusNotFound)
		}

		if response := f.do(http.MethodGet, "/console", nil, auth.RoleViewer); response.Code != http.StatusSeeOther {
			t.Errorf("/console: %d", response.Code)
		}

		if response := f.do(http.MethodDelete, "/console/instances", nil, auth.RoleAdmin); response.Code != http.StatusMethodNotAllowed {
			t.Errorf("DELETE: %d", response.Code)
		}
	})
}

// TestDeletedInstance checks that the page of a deleted instance has a link to its operations, which the broker keeps. The page of an
// instance that has never existed has none.
func TestDeletedInstance(t *testing.T) {
	f := newFixture(t)
	f.instance("a/b", process.Succeeded)

	if _, err := storage.Exec(t.Context(), f.db.Writer(), `DELETE FROM instances`); err != nil {
		t.Fatal(err)
	}

	const link = `href="/console/operations?instance_id=a%2Fb"`

	if html := f.page("/console/instances/a%2Fb", http.StatusNotFound); !strings.Contains(html, link) {
		t.Errorf("the page lacks %s: %s", link, html)
	}

	if html := f.page("/console/operations?instance_id=a%2Fb", http.StatusOK); !strings.Contains(html, "/console/operations/op-a%2Fb") {
		t.Errorf("the list lacks the operation: %s", html)
	}

	if html := f.page("/console/instances/none", http.StatusNotFound); strings.Contains(html, "/console/operations?") {
		t.Errorf("the page links to operations that do not exist: %s", html)
	}
}

// TestExpired checks that the page of an expired instance says when it expired, not that it expires now.
func TestExpired(t *testing.T) {
	f := newFixture(t)
	expires := f.clock.Now().Add(time.Hour)

	f.instance("lasting", process.Succeeded, func(i *environment.Instance) { i.ExpiresAt = expires })
	f.instance("expired", process.Succeeded, func(i *environment.Instance) { i.ExpiresAt = f.clock.Now() })

	if _, err := storage.Exec(t.Context(), f.db.Writer(), `UPDATE instances SET expired_at = expires_at WHERE id = 'expired'`); err != nil {
		t.Fatal(err)
	}

	f.clock.SetTime(f.clock.Now().Add(time.Minute))

	for id, wants := range map[string][]string{
		"lasting": {"<dt>Expires</dt>", `title="2030-01-02 04:04:05 UTC" data-relative="until">in 58m`},
		"expired": {"<dt>Expired</dt>", `title="2030-01-02 03:04:07 UTC" data-relative="ago">1m`},
	} {
		html := f.page("/console/instances/"+id, http.StatusOK)
		for _, want := range wants {
			if !strings.Contains(html, want) || strings.Count(html, "<dt>Expire") != 1 {
				t.Errorf("the page of the instance lacks %s:\n%s", want, html)
			}
		}
	}
}

// TestExpiredBinding checks that the page of an instance says when a binding has expired.
func TestExpiredBinding(t *testing.T) {
	f := newFixture(t)
	f.instance("one", process.Succeeded)

	for id, expires := range map[string]time.Time{"lasting": f.clock.Now().Add(time.Hour), "past": f.clock.Now().Add(-time.Hour)} {
		if err := f.bindings.Insert(t.Context(), f.db.Writer(), environment.Binding{
			ID: id, InstanceID: "one", BindingID: id, State: environment.BindingReady, ExpiresAt: expires, CreatedAt: f.clock.Now(),
		}); err != nil {
			t.Fatal(err)
		}
	}

	html := f.page("/console/instances/one", http.StatusOK)
	for _, want := range []string{`data-relative="until">in 1h`, `data-relative="ago">1h00m ago`} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s:\n%s", want, html)
		}
	}
}

// TestLists filters, searches, sorts and pages through the parameters of the address.
func TestLists(t *testing.T) {
	f := newFixture(t)

	for _, id := range []string{"a", "b", "c"} {
		f.instance(id, process.Succeeded)
	}

	f.instance("d", process.Failed, func(i *environment.Instance) { i.PlanName = "trial" })

	for path, want := range map[string][]string{
		"/console/instances":                                       {"d", "c", "b", "a"},
		"/console/instances?sort=oldest":                           {"a", "b", "c", "d"},
		"/console/instances?state=failed":                          {"d"},
		"/console/instances?plan=aws&state=":                       {"c", "b", "a"},
		"/console/instances?search=NAME-C":                         {"c"},
		"/console/instances?search=c-b":                            {"b"},
		"/console/instances?search=ame-b":                          {},
		"/console/instances?search=ame-b&anywhere=true":            {"b"},
		"/console/instances?sort=-name&anywhere=":                  {"d", "c", "b", "a"},
		"/console/instances?sort=plan":                             {"a", "b", "c", "d"},
		"/console/instances?search=runtime-a&plan=aws&sort=oldest": {"a"},
	} {
		if diff := cmp.Diff(want, links(f.page(path, http.StatusOK))); diff != "" {
			t.Errorf("%s: -want +got\n%s", path, diff)
		}
	}

	for _, path := range []string{
		"/console/instances?state=none", "/console/instances?sort=none", "/console/instances?wrong=1", "/console/instances?cursor=x",
		"/console/operations?state=none", "/console/operations?page_size=0",
	} {
		if html := f.page(path, http.StatusBadRequest); !strings.Contains(html, `role="alert"`) {
			t.Errorf("%s does not say what is wrong", path)
		}
	}
}

// TestFormsKeepFilters checks that the form of each list contains each parameter of the list, except the paging parameters.
func TestFormsKeepFilters(t *testing.T) {
	t.Parallel()

	for endpoint, page := range map[string]func(url.Values) templ.Component{
		"GET /runtimes":   func(query url.Values) templ.Component { return views.InstancesPage(views.Instances{Query: query}) },
		"GET /operations": func(query url.Values) templ.Component { return views.OperationsPage(views.Operations{Query: query}) },
		"GET /audit":      func(query url.Values) templ.Component { return views.AuditPage(views.Audit{Query: query}) },
	} {
		for _, name := range operator.New(operator.Options{}).Route(endpoint).Query {
			if slices.Contains([]string{"cursor", "page", "total"}, name) {
				continue
			}

			var html strings.Builder
			if err := page(url.Values{name: {"given"}}).Render(t.Context(), &html); err != nil {
				t.Fatal(err)
			}

			if !strings.Contains(html.String(), ` name="`+name+`"`) {
				t.Errorf("the form of %s drops %s", endpoint, name)
			}
		}
	}
}

// TestSortLinks checks the links in the headers of the columns. The column by which the list is sorted shows the direction and links
// to the opposite one. The links keep the filters and lead to the first page.
func TestSortLinks(t *testing.T) {
	f := newFixture(t)
	for _, id := range []string{"a", "b", "c"} {
		f.instance(id, process.Succeeded)
	}

	_, after, _ := strings.Cut(f.page("/console/instances?page_size=1&sort=name", http.StatusOK), `rel="next" href="`)
	second, _, _ := strings.Cut(after, `"`)

	for path, want := range map[string][]string{
		"/console/instances": {
			`<th scope="col" aria-sort="descending"><a id="sort-oldest" href="/console/instances?sort=oldest">Created</a></th>`,
			`<th scope="col"><a id="sort-name" href="/console/instances?sort=name">Instance</a></th>`, `<th scope="col">State</th>`,
		},
		"/console/instances?sort=oldest&plan=aws": {
			`<th scope="col" aria-sort="ascending"><a id="sort-oldest" href="/console/instances?plan=aws&amp;sort=newest">Created</a></th>`,
		},
		strings.ReplaceAll(second, "&amp;", "&"): {
			`<th scope="col" aria-sort="ascending"><a id="sort-name" href="/console/instances?page_size=1&amp;sort=-name">Instance</a></th>`,
			`<option value="name" selected>Name</option>`,
		},
		"/console/instances?sort=-region": {
			`<th scope="col" aria-sort="descending"><a id="sort-region" href="/console/instances?sort=region">Region</a></th>`,
		},
		"/console/instances?search=nothing&sort=name": {`href="/console/instances?anywhere=true&amp;search=nothing&amp;sort=name"`},
	} {
		html := f.page(path, http.StatusOK)
		for _, each := range want {
			if !strings.Contains(html, each) {
				t.Errorf("%s lacks %s:\n%s", path, each, html)
			}
		}

		if strings.Count(html, "aria-sort") > 1 {
			t.Errorf("%s is sorted by several columns", path)
		}
	}
}

// TestPaging follows the links to the next page, in both orders. The links keep the filters.
func TestPaging(t *testing.T) {
	f := newFixture(t)

	for _, id := range []string{"a", "b", "c", "d", "e"} {
		f.instance(id, process.Succeeded)
	}

	for sort, want := range map[string][][]string{"oldest": {{"a", "b"}, {"c", "d"}, {"e"}}, "name": {{"a", "b"}, {"c", "d"}, {"e"}}, "-region": {{"e", "d"}, {"c", "b"}, {"a"}}, "": {{"e", "d"}, {"c", "b"}, {"a"}}} {
		var got [][]string

		for path := "/console/instances?page_size=2&plan=aws&sort=" + sort; path != ""; {
			html := f.page(path, http.StatusOK)
			got = append(got, links(html))

			_, after, more := strings.Cut(html, `rel="next" href="`)
			address, _, _ := strings.Cut(after, `"`)

			if path = strings.ReplaceAll(address, "&amp;", "&"); more && !strings.Contains(path, "plan=aws") {
				t.Errorf("the link %s loses the filter", path)
			}
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", sort, diff)
		}
	}
}

// TestInterventions cancels and retries with forms.
func TestInterventions(t *testing.T) {
	f := newFixture(t)
	running, failed := f.instance("a", process.InProgress), f.instance("b", process.Failed)
	reason := url.Values{"reason": {"the region is gone"}}

	for _, c := range []struct {
		reason, path string
		form         url.Values
		role         auth.Role
		status       int
		text         string
	}{
		{"a viewer must not intervene", running + "/cancel", reason, auth.RoleViewer, http.StatusForbidden, "lacks the operator role"},
		{"a reason is needed", running + "/cancel", url.Values{}, auth.RoleOperator, http.StatusBadRequest, "reason is missing"},
		{"only ended operations can be retried", running + "/retry", reason, auth.RoleOperator, http.StatusConflict, "Only a failed or canceled operation"},
		{"later steps depend on the step", running + "/skip", reason, auth.RoleOperator, http.StatusConflict, "cannot be skipped"},
		{"there is no such operation", "none/cancel", reason, auth.RoleOperator, http.StatusNotFound, "does not exist"},
	} {
		response := f.do(http.MethodPost, "/console/operations/"+c.path, c.form, c.role)
		if response.Code != c.status || !strings.Contains(response.Body.String(), c.text) {
			t.Errorf("%s: %d %s", c.reason, response.Code, response.Body)
		}

		checkPage(t, c.path, response.Body.String())
	}

	if f.woken != 0 {
		t.Error("a rejected intervention has changed something")
	}

	response := f.do(http.MethodPost, "/console/operations/"+running+"/cancel", reason, auth.RoleOperator)
	if response.Code != http.StatusSeeOther || response.Header().Get("Location") != "/console/operations/op-a" {
		t.Errorf("cancel: %d %s", response.Code, response.Header())
	}

	f.clock.SetTime(f.clock.Now().Add(time.Second))

	response = f.do(http.MethodPost, "/console/operations/"+failed+"/retry", reason, auth.RoleOperator)
	if response.Code != http.StatusSeeOther || response.Header().Get("Location") == "/console/operations/op-b" {
		t.Errorf("retry: %d %s", response.Code, response.Header())
	}

	entries, err := f.entries.List(t.Context(), auditlog.Filter{Limit: 9})
	if err != nil || len(entries) != 2 {
		t.Fatalf("entries %v, %v", entries, err)
	}

	for i, action := range []string{auditlog.ActionCancel, auditlog.ActionRetry} {
		if entry := entries[len(entries)-1-i]; entry.Action != action || entry.Reason != "the region is gone" || entry.By.User != "ada" {
			t.Errorf("entry %+v", entry)
		}
	}
}

// TestRetryIsOffered checks that the page of a failed operation offers a retry only while the operation is the newest one of the instance. After
// the retry, another one would be rejected.
func TestRetryIsOffered(t *testing.T) {
	f := newFixture(t)
	failed := "/console/operations/" + f.instance("a", process.Failed)
	form := `action="` + failed + `/retry"`

	html := f.do(http.MethodGet, failed, nil, auth.RoleOperator).Body.String()
	if !strings.Contains(html, form) {
		t.Errorf("the page does not offer a retry: %s", html)
	}

	if strings.Contains(html, "at the failed step") {
		t.Errorf("the page says that a retry starts at the failed step, but it starts with the stage: %s", html)
	}

	f.clock.SetTime(f.clock.Now().Add(time.Second))

	if response := f.do(http.MethodPost, failed+"/retry", url.Values{"reason": {"more quota"}}, auth.RoleOperator); response.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", response.Code, response.Body)
	}

	for _, role := range []auth.Role{auth.RoleOperator, auth.RoleViewer} {
		html := f.do(http.MethodGet, failed, nil, role).Body.String()
		if strings.Contains(html, form) || strings.Contains(html, "Interventions") {
			t.Errorf("the page offers another retry to the role %s: %s", role, html)
		}

		if !strings.Contains(html, "The operation was retried.") {
			t.Errorf("the page does not say that the operation was retried: %s", html)
		}
	}
}

// TestRetryOfConductor checks that the page of an orchestration offers a retry if its conductor has failed, although no target has failed. The
// retry continues the orchestration.
func TestRetryOfConductor(t *testing.T) {
	f := newFixture(t)
	f.instance("a", process.Succeeded)

	id, err := f.orders.Create(t.Context(), environment.KindUpgradeCluster, fleet.Parameters{Targets: fleet.Targets{Include: []fleet.Target{{Target: "all"}}}})
	if err != nil {
		t.Fatal(err)
	}

	page := "/console/orchestrations/" + id
	offered := func() bool {
		return strings.Contains(f.do(http.MethodGet, page, nil, auth.RoleOperator).Body.String(), `action="`+page+`/retry"`)
	}

	if offered() {
		t.Error("the page offers to retry an orchestration that has not begun")
	}

	conductors, err := f.operations.List(t.Context(), operations.Filter{Kinds: []string{environment.KindOrchestrate}, Limit: 2})
	if err != nil || len(conductors) != 1 {
		t.Fatalf("conductors %+v, %v", conductors, err)
	}

	if html := f.page("/console/operations/"+conductors[0].ID, http.StatusOK); !strings.Contains(html, "<title>orchestrate") || strings.Contains(html, "orchestrate of") {
		t.Errorf("the page of the conductor names an instance:\n%s", html)
	}

	f.cancel(conductors[0].ID)

	if err := f.orchestrations.SetState(t.Context(), f.db.Writer(), id, environment.OrchestrationFailed, "The conductor has failed", f.clock.Now()); err != nil {
		t.Fatal(err)
	}

	if !offered() {
		t.Error("the page does not offer to continue the orchestration")
	}

	if response := f.do(http.MethodPost, page+"/retry", url.Values{}, auth.RoleOperator); response.Code != http.StatusSeeOther {
		t.Errorf("%d %s", response.Code, response.Body)
	}

	if found, err := f.orchestrations.Get(t.Context(), f.db.Reader(), id); err != nil || found.State != environment.OrchestrationPending {
		t.Errorf("the orchestration is %s, %v", found.State, err)
	}
}

// TestRoles checks that each page requires at least the viewer role.
func TestRoles(t *testing.T) {
	f := newFixture(t)
	f.instance("a", process.Succeeded)

	for _, path := range []string{"/console/", "/console/instances", "/console/instances/a", "/console/operations", "/console/operations/op-a", "/console/live", "/console/orchestrations", "/console/catalog", "/console/catalog/none", "/console/systems", "/console/audit", "/console/bundles", "/console/bundles/none"} {
		for _, roles := range [][]auth.Role{nil, {auth.RoleOSB}} {
			if response := f.do(http.MethodGet, path, nil, roles...); response.Code != http.StatusForbidden {
				t.Errorf("%s with the roles %v: %d", path, roles, response.Code)
			}
		}
	}
}

// TestAudit checks that only admins see the audit log, and verifies the log.
func TestAudit(t *testing.T) {
	f := newFixture(t)
	operation := f.instance("a", process.InProgress)

	f.do(http.MethodPost, "/console/operations/"+operation+"/cancel", url.Values{"reason": {"no <longer> needed"}}, auth.RoleOperator)

	for path, wants := range map[string][]string{
		"/console/audit":              {"cancel", "ada", "no &lt;longer&gt; needed", "/console/instances/a", "&#34;state&#34;: &#34;in progress&#34;"},
		"/console/audit?action=retry": {"No entry matches."},
		"/console/audit/verification": {"The audit log is intact."},
	} {
		response := f.do(http.MethodGet, path, nil, auth.RoleAdmin)
		checkPage(t, path, response.Body.String())

		for _, want := range wants {
			if !strings.Contains(response.Body.String(), want) {
				t.Errorf("%s lacks %s: %d\n%s", path, want, response.Code, response.Body)
			}
		}

		if response := f.do(http.MethodGet, path, nil, auth.RoleOperator); response.Code != http.StatusForbidden {
			t.Errorf("%s for an operator: %d", path, response.Code)
		}
	}
}

// TestOrchestrations pauses, resumes and cancels an orchestration.
func TestOrchestrations(t *testing.T) {
	f := newFixture(t)
	f.instance("a", process.Succeeded)

	id, err := f.orders.Create(t.Context(), environment.KindUpgradeCluster, fleet.Parameters{Targets: fleet.Targets{Include: []fleet.Target{{Target: "all"}}}})
	if err != nil {
		t.Fatal(err)
	}

	if html := f.page("/console/orchestrations", http.StatusOK); !strings.Contains(html, "/console/orchestrations/"+id) {
		t.Errorf("the list lacks the orchestration: %s", html)
	}

	for _, c := range []struct {
		action, text string
		role         auth.Role
		status       int
	}{
		{"pause", "lacks the operator role", auth.RoleViewer, http.StatusForbidden},
		{"pause", "The orchestration is being planned.", auth.RoleOperator, http.StatusConflict},
		{"", "", "", 0},
		{"pause", "", auth.RoleOperator, http.StatusSeeOther},
		{"resume", "", auth.RoleOperator, http.StatusSeeOther},
		{"cancel", "", auth.RoleOperator, http.StatusSeeOther},
		{"pause", "Nothing was changed.", auth.RoleOperator, http.StatusConflict},
		{"apply", "lacks the operator role", auth.RoleViewer, http.StatusForbidden},
		{"apply", "Nothing was changed.", auth.RoleOperator, http.StatusConflict},
		{"retry", "lacks the operator role", auth.RoleViewer, http.StatusForbidden},
		{"retry", "Nothing was changed.", auth.RoleOperator, http.StatusConflict},
	} {
		if c.action == "" {
			if _, err := storage.Exec(t.Context(), f.db.Writer(), `UPDATE orchestrations SET state = 'in progress'`); err != nil {
				t.Fatal(err)
			}

			continue
		}

		response := f.do(http.MethodPost, "/console/orchestrations/"+id+"/"+c.action, url.Values{}, c.role)
		if response.Code != c.status || !strings.Contains(response.Body.String(), c.text) {
			t.Errorf("%s as %s: %d %s", c.action, c.role, response.Code, response.Body)
		}
	}

	f.page("/console/orchestrations/"+id, http.StatusOK)
}

// TestLatency shows the latency of a system after a call, and none before.
func TestLatency(t *testing.T) {
	f := newFixture(t)

	if html := f.page("/console/systems", http.StatusOK); strings.Contains(html, `title="of the last`) {
		t.Errorf("without calls: %s", html)
	}

	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()

	client := http.Client{Transport: f.system.Transport(server.Client().Transport), Timeout: time.Minute}

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}

	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}

	_ = response.Body.Close()

	if html := f.page("/console/systems", http.StatusOK); !strings.Contains(html, `title="of the last 1 calls"`) || !strings.Contains(html, " ms") {
		t.Errorf("after a call: %s", html)
	}
}
