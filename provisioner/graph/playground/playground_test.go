package playground_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/graph/playground"
)

func get(t *testing.T, endpoint, path string) *httptest.ResponseRecorder {
	t.Helper()

	mux := http.NewServeMux()
	playground.Register(mux, endpoint)

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))

	return answer
}

// TestPageIsSelfContained checks that the page loads only files from the binary.
func TestPageIsSelfContained(t *testing.T) {
	page := get(t, "/graphql", "/").Body.String()

	parts := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(parts) != 2 {
		t.Fatalf("the page loads %v, want its script and its style", parts)
	}

	for _, part := range parts {
		answer := get(t, "/graphql", "/"+part[1])
		if answer.Code != http.StatusOK || answer.Body.Len() == 0 || strings.Contains(answer.Body.String(), "://") {
			t.Errorf("%s: status %d, %d bytes; want a file that names no other server", part[1], answer.Code, answer.Body.Len())
		}
	}

	if strings.Contains(page, "://") {
		t.Error("the page names another server")
	}
}

func TestEndpoint(t *testing.T) {
	cases := map[string]struct{ reason, endpoint, wantPage, wantPolicy string }{
		"path": {
			reason:   "the API is on the same server, possibly behind a proxy",
			endpoint: "/behind/a/proxy/graphql", wantPage: `data-endpoint="/behind/a/proxy/graphql"`, wantPolicy: "connect-src 'self';",
		},
		"address": {
			reason:   "the API may be on another server, and only there",
			endpoint: "https://api.example.com/graphql", wantPage: `data-endpoint="https://api.example.com/graphql"`,
			wantPolicy: "connect-src https://api.example.com;",
		},
		"quotes": {
			reason: "the endpoint is escaped", endpoint: `/"><script>`, wantPage: `data-endpoint="/&#34;&gt;&lt;script&gt;"`,
			wantPolicy: "connect-src 'self';",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := get(t, c.endpoint, "/")
			if page := answer.Body.String(); !strings.Contains(page, c.wantPage) {
				t.Errorf("%s: want %s in %s", c.reason, c.wantPage, page)
			}

			if policy := answer.Header().Get("Content-Security-Policy"); !strings.Contains(policy, c.wantPolicy) {
				t.Errorf("%s: want %s in %s", c.reason, c.wantPolicy, policy)
			}
		})
	}
}

func TestOtherPathsAreNotFound(t *testing.T) {
	for _, path := range []string{"/elsewhere", "/page.html", "/playground.go"} {
		if answer := get(t, "/graphql", path); answer.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", path, answer.Code)
		}
	}
}
