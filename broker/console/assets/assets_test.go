package assets_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker/console/assets"
)

// TestHandler requests each file by its path, and paths that no file has.
func TestHandler(t *testing.T) {
	t.Parallel()

	get := func(path string) *httptest.ResponseRecorder {
		response := httptest.NewRecorder()
		assets.Handler().ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))

		return response
	}

	for _, name := range []string{"console.css", "console.js", "icon.svg", "vendor/htmx.min.js", "vendor/htmx-ext-sse.min.js"} {
		if response := get(assets.Path(name)); response.Code != http.StatusOK || response.Body.Len() == 0 ||
			!strings.Contains(response.Header().Get("Cache-Control"), "immutable") || response.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", name, response.Code, response.Header())
		}
	}

	for _, path := range []string{assets.Prefix, assets.Prefix + "000000000000/console.css", assets.Prefix + "../console.go", assets.Prefix + "assets.go"} {
		if response := get(path); response.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, response.Code)
		}
	}
}
