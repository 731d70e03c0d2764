package session

import (
	"net/http"
	"strings"
)

// contentPolicy allows resources of the console itself only: no inline scripts or styles, no frames, no plugins, and forms that lead nowhere
// else. Logins at an issuer begin with a link, which needs no permission.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// headers is a middleware that sets the headers that limit what browsers do with the response. Pages are not stored by browsers and proxies, because
// they may contain data of tenants; assets set a Cache-Control of their own.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")

		if !strings.HasPrefix(r.URL.Path, pathAssets) {
			header.Set("Cache-Control", "no-store")
		}

		next.ServeHTTP(w, r)
	})
}
