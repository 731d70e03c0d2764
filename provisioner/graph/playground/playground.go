// Package playground serves a page on which people try the Provisioner's API. All of it comes from the binary, so that it works where
// nothing else can be reached; the pages that GraphQL servers commonly show load their scripts from elsewhere.
package playground

import (
	"embed"
	"html/template"
	"net/http"
	"net/url"
)

//go:embed page.html playground.js playground.css
var assets embed.FS

// Register has the mux serve the page at / and its parts beside it. The endpoint is where the browser finds the API: a path, or a
// whole address.
func Register(mux *http.ServeMux, endpoint string) {
	page := template.Must(template.ParseFS(assets, "page.html"))
	parts := http.FileServerFS(assets)
	policy := "default-src 'none'; script-src 'self'; style-src 'self'; connect-src " + origin(endpoint) +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

	serve := func(pattern string, handler http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", policy)
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Referrer-Policy", "no-referrer")
			handler(w, r)
		})
	}

	serve("GET /playground.js", parts.ServeHTTP)
	serve("GET /playground.css", parts.ServeHTTP)
	serve("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.Execute(w, endpoint) // a browser that is gone hears nothing
	})
}

// origin is whom the page may call.
func origin(endpoint string) string {
	address, err := url.Parse(endpoint)
	if err != nil || address.Host == "" {
		return "'self'"
	}

	return address.Scheme + "://" + address.Host
}
