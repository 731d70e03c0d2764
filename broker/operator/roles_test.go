package operator_test

import (
	"net/http"
	"testing"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/auth"
)

// TestRoles checks the status for each role, with some endpoints for each. test/e2e.TestRoles checks the role of every endpoint.
func TestRoles(t *testing.T) {
	const refused, unknown = http.StatusForbidden, http.StatusUnauthorized

	cases := map[string]struct {
		reason string
		method string
		path   string
		want   map[string]int // the status by user
	}{
		"Runtimes":    {"viewers may read", "GET", "/runtimes", map[string]int{"": unknown, "platform": refused, "viewer": 200, "operator": 200, "admin": 200}},
		"Runtime":     {"viewers may read", "GET", "/runtimes/x", map[string]int{"": unknown, "platform": refused, "viewer": 404, "operator": 404, "admin": 404}},
		"AuditChain":  {"admins read the audit log", "GET", "/auditchain", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 200}},
		"Cancel":      {"operators may intervene", "POST", "/operations/x/cancel", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"Expire":      {"operators may expire instances", "PUT", "/expire/service_instance/x", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 200, "admin": 200}},
		"Admin":       {"admins have all roles", "POST", "/runtimes/x/adminkubeconfig", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 404}},
		"Adopt":       {"admins take over clusters", "POST", "/shoots/x/adopt", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 400}},
		"Kyma":        {"operators may upgrade", "POST", "/runtimes/x/upgradeKyma", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 202, "admin": 202}},
		"Settings":    {"only admins see the configuration", "GET", "/configuration", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 200}},
		"Kubeconfig":  {"users of runtimes need no account", "GET", "/kubeconfig/x", map[string]int{"": 404, "platform": 404}},
		"Description": {"the description is public", "GET", "/openapi.yaml", map[string]int{"": 200, "viewer": 200}},
		"Method":      {"a 405 lists the allowed methods", "DELETE", "/runtimes", map[string]int{"admin": 405}},
		"Path":        {"an unknown path", "GET", "/nothing", map[string]int{"": 404}},
	}

	b := newBench(t)

	for name, test := range cases {
		for user, status := range test.want {
			got := b.want(name+" as "+user+": "+test.reason, b.do(user, test.method, test.path), status)
			if status == unknown && got.Header.Get("WWW-Authenticate") == "" {
				b.Errorf("%s: the WWW-Authenticate header is missing", name)
			}
		}
	}
}

func TestWithoutUsersEveryRequestIsAnAdmins(t *testing.T) {
	b := newBench(t, func(options *operator.Options) { options.Authorizer = auth.NewAuthorizer(auth.NoAuthentication{}) })
	b.want("authentication can be disabled", b.do("", "POST", "/runtimes/x/adminkubeconfig"), http.StatusNotFound)
}
