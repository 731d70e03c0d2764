package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/test/harness"
)

// hostile is a user name that contains the script. Colons are removed, because user names in Basic authentication cannot contain
// them.
var hostile = "eve" + strings.ReplaceAll(script, ":", "")

// TestStoredTextsAreEscaped stores a script in every text in the database, and visits every page. A page must not contain an
// element or an attribute from the script, run it, open a dialog or violate the Content-Security-Policy. Texts that are encrypted
// or part of an ID are stored through the APIs.
func TestStoredTextsAreEscaped(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second, func(settings *broker.Config) {
		settings.AuthBasicUsers += secret.String("," + escape(hostile) + ":" + escape(password) + ":osb+admin")
	})
	pages := f.fill()
	poisoned := f.poison()

	b := open(t, f.base)
	b.logIn(hostile)

	query := "?" + url.Values{"search": {script}, "sort": {script}, "state": {script}, "user": {script}, "instance_id": {script}}.Encode()
	pages = append(pages, "/console/instances"+query, "/console/operations"+query, "/console/audit"+query, "/console/orchestrations"+query, "/console/"+url.PathEscape(script),
		"/console/audit/verification", "/console/instances?search="+url.QueryEscape(script), "/console/instances/"+url.PathEscape(script),
		"/console/operations/"+url.PathEscape(script), "/console/orchestrations/"+url.PathEscape(script))
	pages = append(pages, eval[[]string](b, `[...document.querySelectorAll("nav a[href^='/console/']")].map(a => a.getAttribute("href"))`)...)

	seen := map[string]bool{}

	for _, path := range pages {
		b.wantHarmless(path, seen)
	}

	// The values of these columns must occur on a page, so that the test fails if it visits too few pages.
	for _, want := range []string{
		"instances.name", "instances.plan_name", "instances.region", "instances.platform_region", "instance_labels.name", "instance_labels.value",
		"operations.description", "operations.problem_message", "operations.problem_component", "operations.problem_reason", "operations.ordered_by",
		"operations.stage", "operations.waiting_for",
		"timeline.stage", "timeline.step", "timeline.message", "timeline.outcome",
		"instance_events.message", "instance_events.system", "bindings.binding_id", "bindings.role",
		"orchestrations.description", "orchestrations.ordered_by", "orchestrations.applied_by", "orchestration_targets.description",
		"audit.action", "audit.entry",
	} {
		if !seen[want] {
			t.Errorf("no page shows %s", want)
		}

		if !slices.Contains(append(poisoned, "audit.entry"), want) {
			t.Errorf("%s has no script", want)
		}
	}

	t.Logf("pages show the scripts of %d columns of %d: %v", len(seen), len(poisoned), slices.Sorted(maps.Keys(seen)))
}

// TestStoredTextsAreEscapedForTenants is like TestStoredTextsAreEscaped, but visits the pages for tenants.
func TestStoredTextsAreEscapedForTenants(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	dashboard := f.order("one", "my-runtime")
	f.client.WaitForEnd("one")
	f.poison()

	b := open(t, f.base)
	*b.allowed = []string{f.issuer.Listener.Addr().String()}
	b.visit(dashboard)
	b.run(chromedp.Click("a.button", chromedp.ByQuery))
	b.wait("the page of the instance", "location.pathname == '/console/instances/one' && document.readyState == 'complete'")

	seen := map[string]bool{}

	for _, path := range []string{"/console/instances/one", "/console/", "/console/instances/" + url.PathEscape(script), "/console/" + url.PathEscape(script)} {
		b.wantHarmless(path, seen)
	}

	for _, want := range []string{"instances.name", "instances.plan_name", "instances.region"} {
		if !seen[want] {
			t.Errorf("no page shows %s; the last page is %s", want, b.text())
		}
	}
}

// wantHarmless visits a page and fails the test if a text has become an element, an attribute or a script. It adds the columns
// whose texts the page shows to seen.
func (b browser) wantHarmless(path string, seen map[string]bool) {
	b.Helper()
	b.run(chromedp.Navigate(b.base+path), chromedp.WaitReady("body"))

	// An error page would pass the checks below, because it shows none of the texts.
	if status := eval[int](b, `performance.getEntriesByType("navigation")[0].responseStatus`); status >= http.StatusInternalServerError {
		b.Errorf("%s: status %d", path, status)
	}

	if injected := eval[[]string](b, `[...document.querySelectorAll(
		"xss-probe, [data-xss], [onerror], [onload], [onmouseover], main script, main img, main svg:not([viewBox]), a[href^='javascript:'], form[action^='javascript:']")]
		.map(e => e.outerHTML.slice(0, 200)).concat(window.hacked === 1 ? ["the script has run"] : [])`); len(injected) > 0 {
		b.Errorf("%s: %v", path, injected)
	}

	for _, place := range placesIn(eval[string](b, `document.documentElement.outerHTML`)) {
		seen[place] = true
	}

	// Open all details and trigger the scripts that run after a refresh, because they must not turn text into HTML either.
	eval[bool](b, `document.querySelectorAll("details").forEach(d => d.open = true); document.dispatchEvent(new Event("htmx:afterSwap")); true`)
}

// escape encodes a name or a password for APP_AUTH_BASIC_USERS.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// fill stores at least one object of each kind that pages show, and returns the paths of the objects' pages.
func (f *fixture) fill() []string {
	f.Helper()

	admin := harness.Client{TB: f, Endpoint: f.Broker.Endpoint}
	admin.User, admin.Password = hostile, password

	order := harness.Order(harness.PlanAWS)
	order["organization_guid"], order["space_guid"] = script, script
	order["parameters"] = map[string]any{"name": "name", "administrators": []string{script}}
	order["context"] = map[string]any{"platform": "cloudfoundry", "globalaccount_id": script, "subaccount_id": script, "user_id": script}

	instance := url.PathEscape("i " + script)
	admin.Send(http.MethodPut, harness.InstancePath(instance)+harness.Incomplete, order, http.StatusAccepted)
	admin.Send(http.MethodPut, harness.InstancePath("plain")+harness.Incomplete, harness.Order(harness.PlanAWS), http.StatusAccepted)
	f.client.WaitForEnd(instance)
	f.client.WaitForEnd("plain")

	admin.Send(http.MethodPut, harness.BindingPath("plain", "binding")+harness.Incomplete,
		map[string]any{"service_id": harness.ServiceID, "plan_id": harness.PlanAWS}, http.StatusAccepted)

	for _, id := range []string{instance, "plain"} {
		admin.Send(http.MethodPost, "/runtimes/"+id+"/label", map[string]any{"set": map[string]string{"team": "payments"}}, http.StatusOK)
	}

	planned := admin.Send(http.MethodPost, "/upgrade/cluster/plan", map[string]any{"targets": map[string]any{"include": []any{map[string]any{"target": "all"}}}}, http.StatusCreated)

	// One of these operations is canceled, and the other one waits for its cluster.
	harness.InjectClusterFaults(f, f.Garden, harness.StuckClusters())

	for _, id := range []string{"stuck", "canceled"} {
		admin.Send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, harness.Order(harness.PlanAWS), http.StatusAccepted)
	}

	canceled := f.operationOf("canceled")
	admin.Send(http.MethodPost, "/operations/"+canceled+"/cancel", map[string]any{"reason": script}, http.StatusAccepted)
	f.client.Until("the operation is canceled", func() bool {
		return f.client.Send(http.MethodGet, "/operations/"+canceled, nil, http.StatusOK).Text("state") == "canceled"
	})

	f.seed(planned.Text("orchestrationID"))

	pages := []string{"/console/orchestrations/" + planned.Text("orchestrationID"), "/console/orchestrations/" + planned.Text("orchestrationID") + "?state=pending"}

	for _, id := range []string{instance, "plain", "stuck", "canceled"} {
		pages = append(pages, "/console/instances/"+id, "/console/operations/"+url.PathEscape(f.operationOf(id)))
	}

	return pages
}

// seed stores values in columns that are still empty after fill, because pages show such columns only if they have a value.
func (f *fixture) seed(orchestrationID string) {
	f.Helper()

	db := harness.OpenDatabase(f, f.Settings.Database)
	now := time.Now()

	for _, change := range []struct {
		query string
		args  []any
	}{
		{`INSERT INTO instance_events (instance_id, system, number, result, message, happened, first_at, last_at)
			VALUES ('plain', 'gardener', 1, 'failed', 'message', 1, $1, $1)`, []any{now}},
		{`UPDATE orchestrations SET applied_by = 'somebody', applied_at = $1 WHERE id = $2`, []any{now, orchestrationID}},
		{`UPDATE operations SET waiting_for = 'runtime' WHERE instance_id = 'stuck'`, nil},
	} {
		if _, err := db.Writer().ExecContext(f.Context(), change.query, change.args...); err != nil {
			f.Fatal(fmt.Errorf("%s: %w", change.query, err))
		}
	}
}
