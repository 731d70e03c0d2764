package service_test

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestPlaygroundQueryWorks sends the default query of the page, with the variables and the tenant of the page. The query must
// succeed on a new Provisioner.
func TestPlaygroundQueryWorks(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)

	fetch := func(method, url, body string, header http.Header) string {
		request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}

		request.Header = header

		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()

		content, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s %v\n%s", method, url, response.Status, err, content)
		}

		return string(content)
	}

	page := fetch(http.MethodGet, strings.TrimSuffix(f.url, "graphql"), "", http.Header{})
	part := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("the page has no %s", pattern)
		}

		return html.UnescapeString(found[1])
	}

	body, err := json.Marshal(map[string]any{
		"query": part(`(?s)<textarea id="query"[^>]*>(.*?)</textarea>`), "variables": json.RawMessage(part(`(?s)<textarea id="variables"[^>]*>(.*?)</textarea>`)),
	})
	if err != nil {
		t.Fatal(err)
	}

	answer := fetch(http.MethodPost, f.url, string(body), http.Header{
		"Content-Type": {"application/json"}, "Tenant": {part(`<input id="tenant" value="([^"]*)"`)},
	})
	if strings.Contains(answer, `"errors"`) || !strings.Contains(answer, `"cursor":"`) {
		t.Errorf("the response is %s", answer)
	}
}
