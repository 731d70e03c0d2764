package console

import (
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/environment-broker/environment-broker/test/harness"
)

// attack serves a page of another site, and returns its address. The host of the console is 127.0.0.1 and the host of the page is
// localhost, so browsers treat them as different sites.
func attack(t *testing.T, b browser, content string) string {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><title>attack</title><main id="main">%s</main>`, content)
	}))
	t.Cleanup(server.Close)

	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	host := "localhost:" + port
	*b.allowed = append(*b.allowed, host)

	return "http://" + host + "/"
}

// TestOtherSitesChangeNothing submits the forms of the console from a page of another site, in a browser whose user has logged in
// to the console. The submissions must change nothing, but a link from that page to the console must work with the user's session.
func TestOtherSitesChangeNothing(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	harness.InjectClusterFaults(t, f.Garden, harness.StuckClusters())
	f.client.Create("one", harness.PlanAWS)

	operation := f.operationOf("one")
	b := open(t, f.base)
	b.logIn(operator)

	for _, path := range []string{
		"/console/operations/" + operation + "/cancel", "/console/operations/" + operation + "/retry", "/console/operations/" + operation + "/skip",
		"/console/orchestrations/none/pause", "/console/orchestrations/none/resume", "/console/orchestrations/none/cancel", "/console/orchestrations/none/retry",
		"/console/orchestrations/none/apply", "/console/logout", "/console/login",
	} {
		b.visit(attack(t, b, fmt.Sprintf(
			`<form method="post" action="%s%s"><input name="reason" value="attack"><input name="user" value="%s"><input name="password" value="%s"><button>go</button></form>`,
			f.base, path, admin, html.EscapeString(password))))
		b.run(chromedp.Click("button", chromedp.ByQuery))
		b.wait("the response of the console", fmt.Sprintf("location.href == %q && document.readyState == 'complete'", f.base+path))

		if status := eval[int](b, `performance.getEntriesByType("navigation")[0].responseStatus`); status != http.StatusForbidden {
			t.Errorf("POST %s from another site: status %d", path, status)
		}
	}

	// GET requests change nothing, so links and images on other sites cannot change anything either.
	for _, path := range []string{"/cancel", "/retry", "/skip"} {
		b.run(chromedp.Navigate(f.base+"/console/operations/"+operation+path+"?reason=attack"), chromedp.WaitReady("body"))

		if status := eval[int](b, `performance.getEntriesByType("navigation")[0].responseStatus`); status != http.StatusMethodNotAllowed {
			t.Errorf("GET %s: status %d", path, status)
		}
	}

	if got := f.client.Send(http.MethodGet, "/operations/"+operation, nil, http.StatusOK); got.Text("state") != "in progress" {
		t.Errorf("the operation is %s", got.Text("state"))
	}

	b.visit(attack(t, b, fmt.Sprintf(`<a href="%s/console/operations/%s">link</a>`, f.base, operation)))
	b.run(chromedp.Click("a", chromedp.ByQuery))
	b.waitText("Stages and steps")
	b.run(chromedp.Navigate("about:blank"))
	b.taken()
}

// TestOtherSitesCannotFramePages embeds each page in a frame on another site. The browser must show none of them.
func TestOtherSitesCannotFramePages(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	f.client.Create("one", harness.PlanAWS)

	b := open(t, f.base)

	for _, path := range []string{"/console/login", "/console/none"} {
		b.wantNoFrame(path)
	}

	b.logIn(admin)

	pages := eval[[]string](b, `[...document.querySelectorAll("nav a[href^='/console/']")].map(a => a.getAttribute("href"))`)

	for _, path := range append(pages, "/console/instances/one", "/console/operations/"+f.operationOf("one"), "/console/none", "/console/audit/verification") {
		b.wantNoFrame(path)
	}

	// A page that allows framing loads in a frame without a message. This proves that the test does not regard every frame as
	// blocked.
	b.embed(attack(t, b, "framed"))

	if problems := b.taken(); len(problems) > 0 {
		t.Errorf("the browser blocks all frames: %v", problems)
	}
}

// wantNoFrame fails the test if the browser shows a page of the console in a frame.
func (b browser) wantNoFrame(path string) {
	b.Helper()
	b.embed(b.base + path)

	// In place of the page, the frame loads the browser's own error page. The browser logs the violation before or after that.
	var problems []string

	if !harness.Within(harness.Patience, func() bool {
		problems = append(problems, b.taken()...)

		return len(problems) > 0
	}) {
		b.Errorf("another site embeds %s", path)
	}

	for _, problem := range problems {
		if !strings.Contains(problem, "frame-ancestors") {
			b.Errorf("%s: %s", path, problem)
		}
	}
}

// embed embeds an address in a page of another site, and waits until the frame has loaded.
func (b browser) embed(address string) {
	b.Helper()
	b.visit(attack(b.T, b, ""))
	eval[bool](b, fmt.Sprintf(`new Promise(loaded => {
		const frame = document.createElement("iframe");
		frame.onload = () => loaded(true);
		frame.src = %q;
		document.body.append(frame);
	})`, address))
}

// TestLoginReturnsToConsole follows login links whose return address is on another site.
func TestLoginReturnsToConsole(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	b := open(t, f.base)

	for _, address := range []string{"https://evil.example.com/", "//evil.example.com/", `/\evil.example.com`, "/console/..//evil.example.com", "javascript:alert(1)"} {
		b.visit("/console/login?" + url.Values{"return": {address}}.Encode())
		b.run(
			chromedp.SetValue("#user", viewer, chromedp.ByQuery), chromedp.SendKeys("#password", password, chromedp.ByQuery),
			chromedp.Submit("#password", chromedp.ByQuery),
		)
		b.wait("the first page", "location.pathname == '/console/' && document.readyState == 'complete'")
		b.run(chromedp.Click(`form[action="/console/logout"] button`, chromedp.ByQuery))
		b.wait("the login page", "location.pathname == '/console/login' && document.readyState == 'complete'")

		for _, problem := range b.taken() {
			// A refresh of the first page during the logout gets 401.
			if !strings.Contains(problem, "Response Status Error Code 401 from /console/") {
				t.Error(problem)
			}
		}
	}
}
