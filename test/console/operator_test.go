package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/environment-broker/environment-broker/test/harness"
)

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

// TestPages opens each page in an admin's navigation, and the pages of an instance and an operation.
func TestPages(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second, withBundles(t))
	f.client.Create("one", harness.PlanAWS)
	f.client.WaitForEnd("one")

	b := open(t, f.base)
	b.logIn(admin)

	pages := eval[[]string](b, `[...document.querySelectorAll("nav a[href^='/console/']")].map(a => a.getAttribute("href"))`)
	if len(pages) < 2 {
		t.Fatalf("the navigation has the pages %v", pages)
	}

	for _, page := range append(pages, "/console/instances/one", "/console/operations/"+f.operationOf("one"), "/console/bundles/eventing", "/console/none") {
		b.visit(page)
		b.accessible(page)

		if headings := eval[int](b, "document.querySelectorAll('h1').length"); headings != 1 {
			t.Errorf("%s has %d headings of the first level", page, headings)
		}
	}
}

// TestCancelWithKeyboard cancels a stuck operation, with a reason and without a mouse.
func TestCancelWithKeyboard(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	harness.InjectClusterFaults(t, f.Garden, harness.StuckClusters())
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
