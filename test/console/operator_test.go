package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/environment-broker/environment-broker/test/harness"
)

// script is a text that would run in a browser if a page did not escape it.
const script = `"'><script>window.hacked=1</script><img src=x onerror=window.hacked=1>`

// operationOf returns the ID of the newest operation of an instance.
func (f *fixture) operationOf(instanceID string) string {
	f.Helper()

	listed, _ := f.client.Send(http.MethodGet, "/operations?instance_id="+instanceID, nil, http.StatusOK).Body["data"].([]any)
	if len(listed) == 0 {
		f.Fatalf("instance %s has no operation", instanceID)
	}

	newest, _ := listed[0].(map[string]any)
	id, _ := newest["operationID"].(string)

	return id
}

// TestPages opens each page that the navigation of an admin leads to, and those of an instance and an operation.
func TestPages(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	f.client.Create("one", harness.PlanAWS)
	f.client.WaitForEnd("one")

	b := open(t, f.base)
	b.logIn(admin)

	pages := eval[[]string](b, `[...document.querySelectorAll("nav a[href^='/console/']")].map(a => a.getAttribute("href"))`)
	if len(pages) < 2 {
		t.Fatalf("the navigation has the pages %v", pages)
	}

	for _, page := range append(pages, "/console/instances/one", "/console/operations/"+f.operationOf("one"), "/console/none") {
		b.visit(page)
		b.accessible(page)

		if headings := eval[int](b, "document.querySelectorAll('h1').length"); headings != 1 {
			t.Errorf("%s has %d headings of the first level", page, headings)
		}
	}
}

// TestCancelWithKeyboard cancels an operation that is stuck, with a reason and without a mouse.
func TestCancelWithKeyboard(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	harness.InjectClusterFaults(t, f.Garden.Client(), harness.StuckClusters())
	f.client.Create("one", harness.PlanAWS)

	id := f.operationOf("one")
	b := open(t, f.base)
	b.logIn(operator)
	b.visit("/console/instances")

	b.tabTo(fmt.Sprintf("a[href=%q]", "/console/instances/one"))
	b.press(kb.Enter)
	b.wait("the page of the instance", "location.pathname == '/console/instances/one'")
	b.tabTo(fmt.Sprintf("a[href=%q]", "/console/operations/"+id))
	b.press(kb.Enter)
	b.wait("the page of the operation", fmt.Sprintf("location.pathname == %q", "/console/operations/"+id))
	b.accessible("stuck operation")

	cancel := fmt.Sprintf("form[action=%q] ", "/console/operations/"+id+"/cancel")
	if !eval[bool](b, fmt.Sprintf("document.querySelector(%q)?.checkVisibility() ?? false", cancel+"button")) {
		b.tabTo("details:has(" + strings.TrimSpace(cancel) + ") > summary")
		b.press(kb.Enter)
	}

	b.tabTo(cancel + "[name=reason]")
	b.press("ordered by mistake " + script)
	b.tabTo(cancel + "button")
	b.press(kb.Enter)
	b.waitText("cancel")

	f.client.Until("the operation is canceled", func() bool {
		got := f.client.Send(http.MethodGet, "/operations/"+id, nil, http.StatusOK)

		return got.Text("state") == "canceled"
	})

	b.visit("/console/operations/" + id)
	b.waitText("canceled")

	if eval[bool](b, "window.hacked === 1") {
		t.Error("the page has run the reason as a script")
	}

	if got := f.client.Send(http.MethodGet, "/audit?action=cancel&user="+operator, nil, http.StatusOK); !strings.Contains(got.Raw, "ordered by mistake") {
		t.Errorf("the audit log lacks the reason: %s", got.Raw)
	}
}

// tabTo presses Tab until an element that matches the selector has the focus.
func (b browser) tabTo(selector string) {
	b.Helper()

	const most = 200

	for range most {
		if eval[bool](b, fmt.Sprintf("document.activeElement?.matches(%q) ?? false", selector)) {
			return
		}

		b.press(kb.Tab)
	}

	b.Fatalf("the keyboard does not reach %s; the page is %s", selector, b.text())
}

// TestStoredTextsAreEscaped stores scripts in all texts that users choose, and opens the pages that show them.
func TestStoredTextsAreEscaped(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)

	order := harness.Order(harness.PlanAWS)
	order["organization_guid"], order["space_guid"] = script, script
	order["parameters"] = map[string]any{"name": script, "administrators": []string{script}}
	order["context"] = map[string]any{"platform": "cloudfoundry", "globalaccount_id": script, "subaccount_id": script, "user_id": script}

	if got, err := f.client.Try(http.MethodPut, harness.InstancePath("scripts")+harness.Incomplete, order); err != nil || got.Status != http.StatusAccepted {
		// The schema rejects some of the texts: order the instance with those that it accepts.
		order["parameters"] = map[string]any{"name": "name", "administrators": []string{script}}
		f.client.Send(http.MethodPut, harness.InstancePath("scripts")+harness.Incomplete, order, http.StatusAccepted)
	}

	f.client.WaitForEnd("scripts")

	b := open(t, f.base)
	b.logIn(admin)

	pages := eval[[]string](b, `[...document.querySelectorAll("nav a[href^='/console/']")].map(a => a.getAttribute("href"))`)
	query := "?search=%22%27%3E%3Cscript%3Ewindow.hacked%3D1%3C%2Fscript%3E&sort=%22%3E%3Cscript%3Ewindow.hacked%3D1%3C%2Fscript%3E"

	for _, page := range append(pages, "/console/instances/scripts", "/console/operations/"+f.operationOf("scripts"), "/console/instances"+query,
		"/console/operations"+query, "/console/%22%3E%3Cscript%3Ewindow.hacked%3D1%3C%2Fscript%3E") {
		b.run(chromedp.Navigate(b.base+page), chromedp.WaitReady("body"))

		if eval[bool](b, "window.hacked === 1 || document.querySelectorAll('#main img, #main script').length > 0") {
			t.Errorf("%s has run a script or contains an element of a stored text", page)
		}
	}
}
