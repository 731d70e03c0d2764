package auth_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/auth"
)

func TestOriginsAndHosts(t *testing.T) {
	t.Parallel()

	header := func(name, value string) http.Header { return http.Header{name: {value}} }

	cases := map[string]struct {
		reason string
		users  string // empty for no authentication
		method string
		host   string
		header http.Header
		public bool
		want   int
	}{
		"Program":          {"programs send no origin", "u:p:admin", "POST", "broker.example.com", nil, false, 200},
		"Browser":          {"the service's own pages may send changes", "u:p:admin", "POST", "broker.example.com", header("Sec-Fetch-Site", "same-origin"), false, 200},
		"Proxy":            {"a proxy may replace the host", "u:p:admin", "POST", "127.0.0.1:8080", http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {"https://broker.example.com"}}, false, 200},
		"CrossSite":        {"a page of another site sends a change", "u:p:admin", "POST", "broker.example.com", header("Sec-Fetch-Site", "cross-site"), false, 403},
		"SameSite":         {"another host of the same site is another origin", "u:p:admin", "POST", "broker.example.com", header("Sec-Fetch-Site", "same-site"), false, 403},
		"OldBrowser":       {"browsers before 2023 send only Origin", "u:p:admin", "POST", "broker.example.com", header("Origin", "https://evil.example.com"), false, 403},
		"Put":              {"PUT is a change", "u:p:admin", "PUT", "broker.example.com", header("Origin", "https://evil.example.com"), false, 403},
		"Null":             {"a sandboxed page has the origin null", "u:p:admin", "POST", "broker.example.com", header("Origin", "null"), false, 403},
		"Trusted":          {"APP_TRUSTED_ORIGINS", "u:p:admin", "POST", "broker.example.com", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://console.example.com"}}, false, 200},
		"Read":             {"a page cannot read the response of another origin", "u:p:admin", "GET", "broker.example.com", header("Sec-Fetch-Site", "cross-site"), false, 200},
		"CrossSiteNoUsers": {"without users every page could send changes", "", "POST", "127.0.0.1:8080", header("Origin", "https://evil.example.com"), false, 403},

		"Loopback":    {"a loopback address", "", "GET", "127.0.0.1:8080", nil, false, 200},
		"Loopback2":   {"all of 127.0.0.0/8 is loopback", "", "GET", "127.8.9.1", nil, false, 200},
		"LoopbackV6":  {"the loopback address of IPv6", "", "GET", "[::1]:8080", nil, false, 200},
		"Localhost":   {"localhost", "", "GET", "LOCALHOST:8080", nil, false, 200},
		"Allowed":     {"APP_ALLOWED_HOSTS", "", "POST", "Forwarded.example.com", nil, false, 200},
		"Rebound":     {"the name of an attacker's page leads to a loopback address", "", "GET", "evil.example.com:8080", header("Sec-Fetch-Site", "same-origin"), false, 403},
		"Subdomain":   {"an allowed host allows no other", "", "GET", "x.forwarded.example.com", nil, false, 403},
		"Address":     {"an address that is not loopback", "", "GET", "192.0.2.1:8080", nil, false, 403},
		"Empty":       {"a browser sends a host", "", "GET", "", nil, false, 403},
		"Public":      {"public routes are checked too", "", "GET", "evil.example.com", nil, true, 403},
		"WithUsers":   {"with users a rebound name has no credentials", "u:p:admin", "GET", "evil.example.com", nil, false, 200},
		"PublicUsers": {"with users any host may be used", "u:p:admin", "GET", "evil.example.com", nil, true, 200},
	}

	for name, test := range cases {
		access, err := build("127.0.0.1:1", func(options *auth.Options) {
			if test.users != "" {
				options.Users = "u:p:admin"
			}

			options.Config.TrustedOrigins = []string{"https://console.example.com"}
			options.Config.AllowedHosts = []string{"forwarded.example.com"}
		})
		if err != nil {
			t.Fatal(err)
		}

		reached := http.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		if test.public {
			reached = access.Authorizer.Public(reached)
		} else {
			reached = access.Authorizer.Require(auth.RoleAdmin)(reached)
		}

		request := httptest.NewRequestWithContext(t.Context(), test.method, "/", http.NoBody)
		request.Host = test.host
		request.SetBasicAuth("u", "p")

		maps.Copy(request.Header, test.header)

		recorder := httptest.NewRecorder()
		reached.ServeHTTP(recorder, request)

		if recorder.Code != test.want {
			t.Errorf("%s: %s: want %d, got %d %s", name, test.reason, test.want, recorder.Code, recorder.Body)
		}

		if recorder.Code == http.StatusForbidden && !strings.Contains(recorder.Body.String(), "APP_") {
			t.Errorf("%s: the response does not name the variable: %s", name, recorder.Body)
		}
	}
}
