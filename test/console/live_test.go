package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/environment-broker/environment-broker/test/harness"
)

// TestLivePages changes instances while an operator has pages open. The pages must show the changes without a reload, and sections
// that the user has opened must stay open.
func TestLivePages(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	f.client.Create("one", harness.PlanAWS)
	f.client.WaitForEnd("one")

	b := open(t, f.base)
	b.logIn(viewer)

	for i, page := range []struct{ path, shows string }{
		{"/console/instances", `document.querySelector("a[href='/console/instances/%s']") !== null`},
		{"/console/operations", `[...document.querySelectorAll("#results tbody tr")].some(e => e.textContent.includes("%s"))`},
		{"/console/", `document.querySelector("#main").innerText.includes("%[2]d")`},
	} {
		b.visit(page.path)
		b.wait("the script of the page", "document.documentElement?.dataset.script === 'on'")
		eval[bool](b, "window.loadedOnce = true")

		id := fmt.Sprintf("live-%d", i)
		f.client.Create(id, harness.PlanAWS)
		b.wait(page.path+" with the new instance", fmt.Sprintf(page.shows+" || %[1]q === %[2]d", id, i+2))

		if !eval[bool](b, "window.loadedOnce === true") {
			t.Errorf("%s was reloaded", page.path)
		}
	}

	// The instance must not be ready before its page is open.
	harness.InjectClusterFaults(t, f.Garden, harness.StuckClusters())
	f.client.Create("two", harness.PlanAWS)
	b.visit("/console/instances/two")
	b.waitState("provisioning")
	eval[bool](b, `document.querySelector("#resolved").open = true; window.loadedOnce = true`)
	harness.InjectClusterFaults(t, f.Garden, nil)
	b.waitState("succeeded")

	if !eval[bool](b, `window.loadedOnce === true && document.querySelector("#resolved").open`) {
		t.Error("the page of the instance was reloaded, or has closed what the user had opened")
	}

	b.run(chromedp.Navigate("about:blank"))
}

// TestKeyboard moves through pages with keyboard shortcuts.
func TestKeyboard(t *testing.T) {
	t.Parallel()

	f := start(t, 0)
	for _, id := range []string{"one", "two"} {
		f.client.Create(id, harness.PlanAWS)
		f.client.WaitForEnd(id)
	}

	b := open(t, f.base)
	b.logIn(admin)

	at := func(path string) {
		t.Helper()
		b.wait(path, fmt.Sprintf("location.pathname === %q && document.documentElement?.dataset.script === 'on'", path))
	}

	for key, path := range map[string]string{
		"o": "/console/", "i": "/console/instances", "p": "/console/operations", "r": "/console/orchestrations", "c": "/console/catalog", "s": "/console/systems",
		"a": "/console/audit",
	} {
		b.press("g" + key)
		at(path)
	}

	b.press("gi")
	at("/console/instances")
	b.press("j")

	first := eval[string](b, "document.activeElement.getAttribute('href')")

	b.press("j")

	if second := eval[string](b, "document.activeElement.getAttribute('href')"); second == first || second == "" {
		t.Errorf("j moves from %s to %s", first, second)
	}

	b.press("k")

	if got := eval[string](b, "document.activeElement.getAttribute('href')"); got != first {
		t.Errorf("k moves to %s, want %s", got, first)
	}

	b.press(kb.ArrowDown, kb.ArrowUp, kb.Enter)
	at(first)

	b.press("?")
	b.wait("the help", "document.querySelector('#help').open")
	b.press(kb.Escape)
	b.wait("the page without the help", "!document.querySelector('#help').open")

	b.press("t")
	b.wait("the light theme", "document.documentElement.dataset.theme === 'light'")
	b.press("t")
	b.wait("the dark theme", "document.documentElement.dataset.theme === 'dark'")
	b.visit("/console/instances")

	if theme := eval[string](b, "document.documentElement.dataset.theme"); theme != "dark" {
		t.Errorf("the next page has the theme %q", theme)
	}

	b.press("/")
	b.wait("the search", "document.activeElement.id === 'search'")
	b.press("g", "o")

	// chromedp also sends the character of the key that has opened the search, which is trimmed here.
	if got := strings.TrimPrefix(eval[string](b, "document.activeElement.value + location.pathname"), "/"); got != "go/console/instances" {
		t.Errorf("the shortcuts work in a field: %s", got)
	}

	b.run(chromedp.Navigate("about:blank"))
}

// TestListsInAddress searches, filters and sorts a list, and turns its pages. Each state of the list must have its own address,
// which another browser can open and to which the history returns.
func TestListsInAddress(t *testing.T) {
	t.Parallel()

	f := start(t, 0)
	for _, id := range []string{"alpha", "beta", "gamma"} {
		f.order(id, "name-"+id)
		f.client.WaitForEnd(id)
	}

	b := open(t, f.base)
	b.logIn(viewer)
	b.visit("/console/instances?page_size=2")

	rows := func() string {
		return eval[string](b, `[...document.querySelectorAll("#results tbody th a")].map(e => e.textContent).join(" ")`)
	}
	want := func(what, rowsWant, query string) {
		t.Helper()
		b.wait(what, fmt.Sprintf(`[...document.querySelectorAll("#results tbody th a")].map(e => e.textContent).join(" ") === %q`, rowsWant))
		b.wait("the address "+query, fmt.Sprintf("location.search === %q", query))
	}

	if got := rows(); got != "name-gamma name-beta" {
		t.Fatalf("the first page has %s", got)
	}

	b.click("a[rel=next]")
	b.wait("the second page", "location.search.includes('cursor=') && location.search.includes('page_size=2')")
	b.wait("its rows", `document.querySelector("#results tbody th a")?.textContent === "name-alpha"`)
	b.run(chromedp.NavigateBack())
	want("the first page again", "name-gamma name-beta", "?page_size=2")

	b.visit("/console/instances")
	b.run(chromedp.SetValue("[name=sort]", "oldest", chromedp.ByQuery))
	eval[bool](b, `document.querySelector("[name=sort]").dispatchEvent(new Event("change", {bubbles: true}))`)
	want("the oldest first", "name-alpha name-beta name-gamma", "?sort=oldest")

	b.run(chromedp.SendKeys("#search", "name-b", chromedp.ByQuery))
	want("the found instance", "name-beta", "?search=name-b&sort=oldest")

	b.run(chromedp.Reload())
	want("the reloaded page", "name-beta", "?search=name-b&sort=oldest")

	if got := eval[string](b, `document.querySelector("#search").value + document.querySelector("[name=sort]").value`); got != "name-boldest" {
		t.Errorf("the form of the reloaded page has %s", got)
	}

	b.visit("/console/instances?state=failed")
	b.waitText("No instance matches.")

	// Sort with the column headers: in both directions, with several pages, and with a search.
	b.visit("/console/instances?page_size=2")
	b.act(chromedp.Click("#sort-name", chromedp.ByQuery))
	want("sorted by name", "name-alpha name-beta", "?page_size=2&sort=name")
	b.act(chromedp.Click("#sort-name", chromedp.ByQuery))
	want("in descending order", "name-gamma name-beta", "?page_size=2&sort=-name")
	b.wait("the direction", `document.querySelector("th[aria-sort=descending]")?.textContent === "Instance" && document.querySelectorAll("[aria-sort]").length === 1`)
	b.accessible("sorted instances")
	b.act(chromedp.Click("a[rel=next]", chromedp.ByQuery))
	b.wait("the second page", "location.search.includes('cursor=') && location.search.includes('sort=-name')")
	b.wait("its rows", `document.querySelector("#results tbody th a")?.textContent === "name-alpha"`)

	b.visit("/console/instances?sort=-name")
	b.act(chromedp.SendKeys("#search", "ame-", chromedp.ByQuery))
	b.waitText("No instance matches.")
	b.act(chromedp.Click("#results .empty a", chromedp.ByQuery))
	want("parts of names", "name-gamma name-beta name-alpha", "?anywhere=true&search=ame-&sort=-name")
	b.accessible("found instances")

	other := open(t, f.base)
	other.logIn(viewer)
	other.visit("/console/instances?search=name-b&sort=oldest")
	other.waitText("name-beta")

	for _, each := range []browser{b, other} {
		each.run(chromedp.Navigate("about:blank"))
	}
}
