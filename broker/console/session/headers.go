package session

import (
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/broker/console/assets"
)

// contentPolicy allows only resources of the console itself and images in data URLs: no inline scripts or styles, no frames, no
// plugins, and no forms that submit to other sites. Logins at an issuer start with a link, which needs no permission.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// headers is middleware that sets the security headers of responses. Browsers and proxies must not store pages, because pages may
// contain data of tenants. Assets set their own Cache-Control.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")

		if !strings.HasPrefix(r.URL.Path, assets.Prefix) {
			header.Set("Cache-Control", "no-store")
		}

		next.ServeHTTP(w, r)
	})
}
