//go:build site

package docs_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestSearchOfSite types words into the search of the built site in a browser, and opens a result. `make docs-test` builds the
// site and runs this test.
func TestSearchOfSite(t *testing.T) {
	const folder = "../../dist/docs"

	if _, err := os.Stat(filepath.Join(folder, "index.html")); err != nil {
		t.Fatalf("the site is not built, run `make docs`: %v", err)
	}

	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer server.Close()

	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(findChromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1200, 800), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-dev-shm-usage", true),
	})
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}

	limited, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	defer cancel()

	allocator, stop := chromedp.NewExecAllocator(limited, options...)
	defer stop()

	ctx, closeBrowser := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	defer closeBrowser()

	for query, path := range map[string]string{
		"stuck operation":    "/tutorials/stuck-operation.html#find-it",
		"APP_LEASE_DURATION": "/operator/configuration.html#broker",
	} {
		result := fmt.Sprintf(".VPLocalSearchBox .result[href=%q]", path)

		var opened string

		err := chromedp.Run(ctx,
			chromedp.Navigate(server.URL),
			chromedp.Click(".VPNavBarSearch button", chromedp.ByQuery),
			chromedp.SendKeys("#localsearch-input", query, chromedp.ByQuery),
			chromedp.WaitVisible(result, chromedp.ByQuery),
			chromedp.Click(result, chromedp.ByQuery),
			chromedp.WaitNotPresent(".VPLocalSearchBox", chromedp.ByQuery),
			chromedp.Evaluate("location.pathname + location.hash", &opened),
		)
		if err != nil || opened != path {
			t.Errorf("%q: %v; the open page is %q, want %q", query, err, opened, path)
		}
	}
}

// findChromium returns the path of Chromium.
func findChromium(t *testing.T) string {
	t.Helper()

	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}

	t.Fatal("the test of the site needs Chromium: run `make chromium`, or set CHROMIUM to the path of Chromium or Chrome")

	return ""
}
