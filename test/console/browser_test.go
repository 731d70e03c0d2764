package console

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/environment-broker/environment-broker/test/harness"
)

// Window sizes in CSS pixels.
const (
	desktopWidth, desktopHeight = 1200, 800
	phoneWidth, phoneHeight     = 360, 740
)

//go:embed testdata/axe.min.js
var axe string

// browser is a window of Chromium with cookies of its own.
type browser struct {
	*testing.T

	// ctx is the context of chromedp.
	ctx  context.Context //nolint:containedctx // chromedp keeps the browser in it
	base string

	mutex *sync.Mutex
	// problems lists violations of the Content-Security-Policy, script errors and requests to other hosts.
	problems *[]string
	// allowed lists hosts, other than the console's, to which the browser may send requests.
	allowed *[]string
}

// findChromium returns the path of Chromium. If it is not installed, it fails the test with instructions.
func findChromium(t *testing.T) string {
	t.Helper()

	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}

	t.Fatal("the tests of the console need Chromium: run `make chromium`, or set CHROMIUM to the path of Chromium or Chrome")

	return ""
}

// open starts a browser for the console at the address in base, and closes it when the test ends. The test fails if the browser
// has found a problem.
func open(t *testing.T, base string) browser {
	t.Helper()

	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(findChromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(desktopWidth, desktopHeight),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true),
		chromedp.WSURLReadTimeout(harness.Patience),
	})
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}

	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)

	// Newer browsers send protocol values that chromedp does not know. It only logs them, so the log is discarded.
	ctx, closeBrowser := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(closeBrowser)

	b := browser{T: t, ctx: ctx, base: base, mutex: &sync.Mutex{}, problems: &[]string{}, allowed: &[]string{}}

	chromedp.ListenTarget(ctx, b.observe)
	b.run(log.Enable(), network.Enable(), page.Enable(), runtime.Enable())

	t.Cleanup(func() {
		b.mutex.Lock()
		defer b.mutex.Unlock()

		for _, problem := range *b.problems {
			t.Error(problem)
		}
	})

	return b
}

// observe records a problem if the event shows that the page has done something that no console page may do.
func (b browser) observe(event any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	add := func(format string, args ...any) { *b.problems = append(*b.problems, fmt.Sprintf(format, args...)) }

	switch event := event.(type) {
	case *log.EventEntryAdded:
		// The browser also logs responses with an error status. They are ignored, because tests cause them on purpose.
		if entry := event.Entry; entry.Level == log.LevelError && entry.Source != log.SourceNetwork || entry.Source == log.SourceSecurity {
			add("the browser logs: %s %s", entry.Text, entry.URL)
		}
	case *runtime.EventExceptionThrown:
		add("a script fails: %s", event.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.APITypeError {
			add("a script reports an error: %s", arguments(event.Args))
		}
	case *page.EventJavascriptDialogOpening:
		add("the page opens a dialog: %s", event.Message)

		// The dialog is closed, because an open dialog blocks the page. This needs a goroutine, because the listener must not wait
		// for the browser.
		go func() { _ = chromedp.Run(b.ctx, page.HandleJavaScriptDialog(false)) }()
	case *network.EventRequestWillBeSent:
		address, err := url.Parse(event.Request.URL)
		own := err == nil && (strings.HasPrefix(event.Request.URL, b.base+"/") || address.Scheme == "data" || slices.Contains(*b.allowed, address.Host))

		if !own {
			add("the page requests %s", event.Request.URL)
		}
	}
}

func arguments(objects []*runtime.RemoteObject) string {
	var texts []string
	for _, each := range objects {
		texts = append(texts, string(each.Value)+each.Description)
	}

	return strings.Join(texts, " ")
}

// taken returns the problems so far and forgets them, for tests that cause them.
func (b browser) taken() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	found := *b.problems
	*b.problems = nil

	return found
}

// run runs the actions. It fails the test if they take longer than harness.Patience.
func (b browser) run(actions ...chromedp.Action) {
	b.Helper()

	// The first run starts the browser, which lives as long as its context.
	if chromedp.FromContext(b.ctx).Target == nil {
		if err := chromedp.Run(b.ctx); err != nil {
			b.Fatal(err)
		}
	}

	ctx, cancel := context.WithTimeout(b.ctx, harness.Patience)
	defer cancel()

	if err := chromedp.Run(ctx, actions...); err != nil {
		b.Fatalf("%v\nthe page is %s", err, b.text())
	}
}

// act runs an action on an element. If the live page replaces the element before the browser has located it, no input was sent,
// and act runs the action again.
func (b browser) act(action chromedp.Action) {
	b.Helper()

	ctx, cancel := context.WithTimeout(b.ctx, harness.Patience)
	defer cancel()

	for {
		err := chromedp.Run(ctx, action)
		if err == nil {
			return
		}

		if !strings.Contains(err.Error(), "Could not find node with given id") {
			b.Fatalf("%v\nthe page is %s", err, b.text())
		}
	}
}

// text returns the visible text of the page, for failure messages.
func (b browser) text() string {
	var text string

	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()

	_ = chromedp.Run(ctx, chromedp.Evaluate(`location.href + "\n" + document.body.innerText`, &text))

	return text
}

// visit opens a page of the console. path is a path or a complete address.
func (b browser) visit(path string) {
	b.Helper()

	if strings.HasPrefix(path, "/") {
		path = b.base + path
	}

	b.run(chromedp.Navigate(path), chromedp.WaitVisible("#main", chromedp.ByQuery))
}

// try returns the value of a JavaScript expression, which may be a promise. It returns an error if the evaluation fails, for
// example while the browser is opening another page.
func try[Value any](b browser, expression string) (Value, error) {
	var value Value

	ctx, cancel := context.WithTimeout(b.ctx, harness.Patience)
	defer cancel()

	err := chromedp.Run(ctx, chromedp.Evaluate(expression, &value, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))

	return value, err
}

// eval is like try, but fails the test if the evaluation fails.
func eval[Value any](b browser, expression string) Value {
	b.Helper()

	value, err := try[Value](b, expression)
	if err != nil {
		b.Fatalf("%s: %v\nthe page is %s", expression, err, b.text())
	}

	return value
}

// wait waits until a JavaScript expression is true. It does not reload the page. Until then, the evaluation may fail, because the
// browser may be opening another page.
func (b browser) wait(what, expression string) {
	b.Helper()

	var (
		met bool
		err error
	)

	if !harness.Within(harness.Patience, func() bool {
		met, err = try[bool](b, expression)

		return met && err == nil
	}) {
		b.Fatalf("waited %s for %s (error: %v); the page is %s", harness.Patience, what, err, b.text())
	}
}

// click clicks an element of a live page as soon as it is visible and nothing covers it. The page cannot refresh itself between
// the check and the click.
func (b browser) click(selector string) {
	b.Helper()
	b.wait("the click on "+selector, fmt.Sprintf(`(() => {
		const element = document.querySelector(%q);
		if (!element?.checkVisibility()) return false;
		element.scrollIntoView({block: "center"});
		const at = element.getBoundingClientRect(), top = document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2);
		if (!element.contains(top)) return false;
		element.click();
		return true;
	})()`, selector))
}

// waitText waits until the main part of the page contains the given text.
func (b browser) waitText(text string) {
	b.Helper()
	b.wait("the text "+text, fmt.Sprintf("document.querySelector('#main')?.innerText.includes(%q) ?? false", text))
}

// press sends keys to the focused element.
func (b browser) press(keys ...string) {
	b.Helper()

	for _, key := range keys {
		b.run(chromedp.KeyEvent(key))
	}
}

// look sets the size of the window and the color scheme.
func (b browser) look(width, height int64, scheme string) {
	b.Helper()
	b.run(
		chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
	)
}

// looks returns functions that set the window sizes and color schemes in which pages are checked, by name.
func looks() map[string]func(browser) {
	return map[string]func(browser){
		"light": func(b browser) { b.look(desktopWidth, desktopHeight, "light") },
		"dark":  func(b browser) { b.look(desktopWidth, desktopHeight, "dark") },
		"phone": func(b browser) { b.look(phoneWidth, phoneHeight, "light") },
	}
}

// violation is an axe-core rule that the page violates.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// accessible fails the test unless the page is accessible and needs no horizontal scrolling in all looks.
func (b browser) accessible(name string) {
	b.Helper()

	for look, set := range looks() {
		set(b)
		b.run(chromedp.Evaluate(axe, nil))

		found := eval[[]violation](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => r.violations)`)
		for _, each := range found {
			for _, node := range each.Nodes {
				b.Errorf("%s, %s: %s (%s): %s\n%s", name, look, each.Help, each.ID, node.HTML, node.Summary)
			}
		}

		if width := eval[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); width > 0 {
			b.Errorf("%s, %s: the page is %d pixels wider than the window", name, look, width)
		}
	}

	b.look(desktopWidth, desktopHeight, "light")
}
