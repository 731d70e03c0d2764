package console

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/environment-broker/environment-broker/test/harness"
)

// refresh makes the page refresh itself as after an event, and waits for the end of this refresh. An earlier refresh may not have settled yet.
func (b browser) refresh() {
	b.Helper()
	eval[bool](b, `new Promise(done => {
		document.addEventListener("htmx:beforeSend", sent => {
			document.addEventListener("htmx:afterSettle", settled => { if (settled.detail.xhr === sent.detail.xhr) done(true); });
		}, {once: true});
		htmx.trigger(document.querySelector("[data-live]"), "sse:change");
	})`)
}

// wantHeld fails the test unless the page, after an event, sends no request until release is called, and then refreshes itself.
func (b browser) wantHeld(what string, release func()) {
	b.Helper()
	eval[bool](b, `window.sent = 0; document.querySelector("[data-live] > *").dataset.former = "true"; true`)

	if sent := eval[int](b, `htmx.trigger(document.querySelector("[data-live]"), "sse:change"), window.sent`); sent != 0 {
		b.Errorf("%s: the page refreshes itself", what)
	}

	release()
	b.wait(what+": the refresh", `document.querySelector("[data-live] > *") !== null && document.querySelector("[data-former]") === null`)
}

// TestRefreshKeepsInput types a reason while the page refreshes itself, both in browsers that can move elements together with
// their state and in browsers that cannot.
func TestRefreshKeepsInput(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	harness.InjectClusterFaults(t, f.Garden, harness.StuckClusters())
	f.client.Create("one", harness.PlanAWS)

	operation := f.operationOf("one")
	reason := fmt.Sprintf("form[action=%q] [name=reason]", "/console/operations/"+operation+"/cancel")
	b := open(t, f.base)
	b.logIn(operator)

	for name, prepare := range map[string]string{
		"with moveBefore":    "true",
		"without moveBefore": "delete Element.prototype.moveBefore && delete DocumentFragment.prototype.moveBefore && document.body.moveBefore === undefined",
	} {
		b.visit("/console/operations/" + operation)
		b.wait("the script of the page", "document.documentElement?.dataset.script === 'on'")

		if !eval[bool](b, prepare) {
			t.Fatalf("%s: the browser cannot be prepared", name)
		}

		b.wait("the form", fmt.Sprintf(`document.querySelector(%q)?.closest("details") && (document.querySelector(%[1]q).closest("details").open = true)`, reason))
		eval[bool](b, fmt.Sprintf("document.querySelector(%q).focus(), true", reason))
		b.press("by mistake")
		eval[bool](b, "document.activeElement.setSelectionRange(3, 3), true")
		b.refresh()
		b.press("my ")

		if got := eval[string](b, fmt.Sprintf("document.querySelector(%q).value", reason)); got != "by my mistake" {
			t.Errorf("%s: the field contains %q", name, got)
		}
	}

	b.run(chromedp.Navigate("about:blank"))
}

// TestRefreshKeepsPlace checks that a refresh keeps the focus and opened sections with their newest content, and that it waits while the user
// presses a link, selects text or reads the help.
func TestRefreshKeepsPlace(t *testing.T) {
	t.Parallel()

	f := start(t, 0)
	f.client.Create("one", harness.PlanAWS)
	f.client.WaitForEnd("one")

	b := open(t, f.base)
	b.logIn(viewer)
	b.visit("/console/instances/one")
	b.wait("the script of the page", "document.documentElement?.dataset.script === 'on'")

	link := fmt.Sprintf("#instance a[href=%q]", "/console/operations/"+f.operationOf("one"))

	eval[bool](b, fmt.Sprintf(`document.querySelector("#resolved").open = true, document.querySelector("#resolved pre").textContent = "former", document.querySelector(%q).focus(), true`, link))
	b.refresh()

	if !eval[bool](b, `document.querySelector("#resolved").open`) {
		t.Error("the refresh has closed a section")
	}

	if eval[bool](b, `document.querySelector("#resolved pre").textContent === "former"`) {
		t.Error("the refresh has left the former content in an open section")
	}

	if !eval[bool](b, fmt.Sprintf("document.activeElement.matches(%q)", link)) {
		t.Errorf("the focus is on %s", eval[string](b, "document.activeElement.outerHTML"))
	}

	eval[bool](b, `document.addEventListener("htmx:beforeRequest", e => { if (!e.defaultPrevented) window.sent++; }), true`)
	eval[bool](b, `window.getSelection().selectAllChildren(document.querySelector("h1")), true`)
	b.wantHeld("selected text", func() { eval[bool](b, "window.getSelection().removeAllRanges(), true") })
	b.press("?")
	b.wait("the help", "document.querySelector('#help').open")
	b.wantHeld("open help", func() { eval[bool](b, "document.querySelector('#help').close(), true") })

	at := eval[[]float64](b, fmt.Sprintf(`(() => { const link = document.querySelector(%q); link.scrollIntoView({block: "center"});
		const at = link.getBoundingClientRect(); return [at.x + at.width / 2, at.y + at.height / 2] })()`, link))
	mouse := func(kind input.MouseType) {
		b.run(chromedp.MouseEvent(kind, at[0], at[1], chromedp.ButtonType(input.Left), chromedp.ClickCount(1)))
	}

	eval[bool](b, `document.addEventListener("click", e => { window.clicked = e.target.closest("a") !== null; e.preventDefault(); }), true`)
	mouse(input.MousePressed)
	b.wantHeld("pressed link", func() { mouse(input.MouseReleased) })

	if !eval[bool](b, "window.clicked === true") {
		t.Error("the refresh has lost the click")
	}

	b.run(chromedp.Navigate("about:blank"))
}

// TestRefreshAfterChangeDuringRefresh checks that a change during a refresh of the page leads to another refresh: one that arrives
// before the response, and one that arrives after the content was replaced. The page ignores changes that the server reports, because
// their number depends on the time at which the stream opens.
func TestRefreshAfterChangeDuringRefresh(t *testing.T) {
	t.Parallel()

	f := start(t, 0)
	f.client.Create("one", harness.PlanAWS)
	f.client.WaitForEnd("one")

	b := open(t, f.base)
	b.logIn(viewer)
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`window.EventSource = class extends EventSource {
			constructor(...args) { super(...args); window.stream = this; }
			addEventListener(name, listener) {
				super.addEventListener(name, event => { if (name !== "change" || !event.isTrusted) listener(event); });
			}
		}`).Do(ctx)

		return err
	}))
	b.visit("/console/instances/one")
	b.wait("the script of the page", "document.documentElement?.dataset.script === 'on' && window.stream !== undefined")

	for event, name := range map[string]string{"htmx:beforeSend": "before the response", "htmx:afterSwap": "after the replacement"} {
		eval[bool](b, fmt.Sprintf(`window.sent = 0, window.count = () => window.sent++, document.addEventListener("htmx:beforeSend", window.count),
			document.addEventListener(%q, () => window.stream.dispatchEvent(new MessageEvent("change")), {once: true}),
			window.stream.dispatchEvent(new MessageEvent("change"))`, event))
		b.wait("the second refresh, of a change "+name, "window.sent === 2 && document.querySelector('.htmx-request') === null")
		b.refresh()

		if sent := eval[int](b, `document.removeEventListener("htmx:beforeSend", window.count), window.sent`); sent != 3 {
			t.Errorf("%s: a single change leads to %d requests", name, sent-2)
		}
	}

	b.run(chromedp.Navigate("about:blank"))
}

// TestRefreshAfterFailure checks that the page repeats a refresh that the server refuses, and one that does not reach the server.
func TestRefreshAfterFailure(t *testing.T) {
	t.Parallel()

	f := start(t, 0)
	f.client.Create("one", harness.PlanAWS)
	f.client.WaitForEnd("one")

	b := open(t, f.base)
	b.logIn(viewer)

	answers := make(chan fetchAction, 1)

	chromedp.ListenTarget(b.ctx, func(event any) {
		paused, is := event.(*fetch.EventRequestPaused)
		if !is {
			return
		}

		// The listener must not wait for the browser.
		go func() {
			var action chromedp.Action = fetch.ContinueRequest(paused.RequestID)

			select {
			case answer := <-answers:
				action = answer(paused.RequestID)
			default:
			}

			_ = chromedp.Run(b.ctx, action)
		}()
	})
	b.visit("/console/instances/one")
	b.wait("the script of the page", "document.documentElement?.dataset.script === 'on'")
	b.run(fetch.Enable().WithPatterns([]*fetch.RequestPattern{{URLPattern: "*/console/instances/one"}}))

	for name, answer := range map[string]fetchAction{
		"refused": func(id fetch.RequestID) chromedp.Action {
			return fetch.FulfillRequest(id, http.StatusServiceUnavailable)
		},
		"not reached": func(id fetch.RequestID) chromedp.Action {
			return fetch.FailRequest(id, network.ErrorReasonConnectionRefused)
		},
	} {
		answers <- answer

		eval[bool](b, `document.querySelector("[data-live] > *").dataset.former = "true", htmx.trigger(document.querySelector("[data-live]"), "sse:change")`)
		b.wait(name+": the repeated refresh", `document.querySelector("[data-live] > *") !== null && document.querySelector("[data-former]") === null`)

		if problems := b.taken(); len(problems) == 0 || len(answers) > 0 {
			t.Errorf("%s: the first refresh has not failed", name)
		}
	}

	b.run(chromedp.Navigate("about:blank"))
}

// TestRefreshAfterDeletion deletes an instance while an operator and a tenant have its page open. The pages must not keep showing the deletion.
func TestRefreshAfterDeletion(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	harness.InjectClusterFaults(t, f.Garden, harness.StuckClusters())

	dashboard := f.order("one", "my-runtime")

	operators, tenants := open(t, f.base), open(t, f.base)
	operators.logIn(viewer)
	operators.visit("/console/instances/one")
	operators.waitState("provisioning")

	*tenants.allowed = []string{f.issuer.Listener.Addr().String()}

	tenants.visit(dashboard)
	tenants.run(chromedp.Click("a.button", chromedp.ByQuery))
	tenants.waitText("creating")

	harness.InjectClusterFaults(t, f.Garden, nil)
	f.client.Delete("one", harness.PlanAWS)
	operators.waitText("The instance does not exist.")
	tenants.waitText("This page does not exist")

	// htmx reports the responses with 404.
	operators.taken()
	tenants.taken()
}

// fetchAction returns an action that answers the request with the given ID instead of the server.
type fetchAction func(fetch.RequestID) chromedp.Action
