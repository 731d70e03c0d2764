// Package playground serves a page on which developers try the GraphQL API. The page is part of the binary and works without
// internet access, unlike common GraphQL playgrounds, which load their scripts from a CDN. The page reads the schema by
// introspection, so a change to the schema needs no change here.
package playground

import (
	"embed"
	"html/template"
	"net/http"
	"net/url"
)

//go:embed page.html playground.js playground.css
var assets embed.FS

// Register adds the page at / and its files to the mux. The endpoint is the path or the URL at which browsers reach the API. The
// content security policy allows the page to load only its own files and to call only the endpoint's origin.
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
		_ = page.Execute(w, endpoint) // fails only if the browser has disconnected
	})
}

// origin returns the origin of the endpoint for the content security policy. For a path, this is 'self'.
func origin(endpoint string) string {
	address, err := url.Parse(endpoint)
	if err != nil || address.Host == "" {
		return "'self'"
	}

	return address.Scheme + "://" + address.Host
}
