package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/environment-broker/environment-broker/test/harness"
)

// TestTenant follows the dashboard link of a new instance as its administrator, and checks single sign-on, the display of progress
// without a reload, and the kubeconfig.
func TestTenant(t *testing.T) {
	t.Parallel()

	f := start(t, 3*time.Second)
	dashboard := f.order("one", "my-runtime")

	b := open(t, f.base)
	*b.allowed = []string{f.issuer.Listener.Addr().String()}

	b.visit(dashboard)
	b.accessible("login")
	b.run(chromedp.Click("a.button", chromedp.ByQuery))
	b.waitText("my-runtime")

	if got := eval[string](b, "location.href"); got != dashboard || got != f.base+"/console/instances/one" {
		t.Errorf("the login returns to %s, and the dashboard is %s", got, dashboard)
	}

	eval[bool](b, "window.loadedOnce = true")
	b.waitText("Creation succeeded")
	b.waitText("active")

	if !eval[bool](b, "window.loadedOnce === true") {
		t.Error("the page was reloaded")
	}

	b.accessible("instance")

	kubeconfig := eval[string](b, "fetch(document.querySelector('a.button').href).then(r => r.text())")
	if !strings.Contains(kubeconfig, "kind: Config") || !strings.Contains(kubeconfig, "current-context: my-runtime") {
		t.Errorf("the kubeconfig is %s", kubeconfig)
	}

	b.visit("/console/")
	b.accessible("first page of a tenant")
	b.visit("/console/instances/other")
	b.accessible("missing page")
	b.waitText("This page does not exist")

	b.run(chromedp.Click(`form[action="/console/logout"] button`, chromedp.ByQuery))
	b.wait("the login page", "location.pathname == '/console/login' && document.readyState == 'complete'")
	b.visit(dashboard)
	b.wait("the login page", "location.pathname == '/console/login'")
}

// TestLoginWithKeyboard logs in and out without a mouse.
func TestLoginWithKeyboard(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	f.client.Create("one", harness.PlanAWS)

	b := open(t, f.base)
	b.visit("/console/instances/one")

	b.press(kb.Tab)

	if got := eval[string](b, "document.activeElement.textContent"); got != "Skip to the content" {
		t.Errorf("the first stop is %q", got)
	}

	b.tabTo("#user")
	b.press(viewer, kb.Tab, "wrong", kb.Enter)
	b.waitText("The user name or the password is wrong.")
	b.accessible("failed login")

	b.tabTo("#user")
	b.press(viewer, kb.Tab, password, kb.Enter)
	b.wait("the page of the instance", "location.pathname == '/console/instances/one'")
}

// TestContentPolicy checks that the browser enforces the Content-Security-Policy, and that the tests notice violations.
func TestContentPolicy(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	b := open(t, f.base)
	b.visit("/console/login")

	for name, script := range map[string]string{
		"inline script": `const s = document.createElement("script"); s.textContent = "window.ran = true"; document.body.append(s); true`,
		"inline style":  `document.body.setAttribute("style", "color: red"); true`,
		"image":         `new Image().src = "http://127.0.0.2:9/x.png"; true`,
		"connection":    `fetch("http://127.0.0.2:9/").catch(() => true)`,
		"form":          `const f = document.createElement("form"); f.action = "http://127.0.0.2:9/"; document.body.append(f); f.submit(); true`,
	} {
		eval[bool](b, script)

		var found []string

		if !harness.Within(harness.Patience, func() bool {
			found = append(found, b.taken()...)

			return len(found) > 0
		}) {
			t.Errorf("%s: the browser reports no violation", name)
		}
	}

	if eval[bool](b, "window.ran === true") {
		t.Error("an inline script has run")
	}
}

// TestSessionOfReplica logs in to one broker, and continues with the same session at another broker on the same database.
func TestSessionOfReplica(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	f.client.Create("one", harness.PlanAWS)

	b := open(t, f.base)
	b.logIn(admin)
	// Leave the page, because an open page would report that its event stream has ended with the replica.
	leave := func() { b.run(chromedp.Navigate("about:blank")) }

	leave()
	f.RestartBroker()
	b.visit("/console/instances/one")
	b.wait("the page without a login", "location.pathname == '/console/instances/one'")

	if got := f.client.Send(http.MethodGet, "/audit?action=login&user="+admin, nil, http.StatusOK); !strings.Contains(got.Raw, admin) {
		t.Errorf("the audit log has no login: %s", got.Raw)
	}

	leave()
}
