package operator_test

import (
	"net/http"
	"testing"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/auth"
)

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
		"AuditEntry":  {"admins read the audit log", "GET", "/audit/x", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 404}},
		"AuditChain":  {"admins read the audit log", "GET", "/auditchain", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 200}},
		"Bindings":    {"viewers may read", "GET", "/runtimes/x/bindings", map[string]int{"": unknown, "platform": refused, "viewer": 404, "operator": 404, "admin": 404}},
		"Operations":  {"viewers may read", "GET", "/operations", map[string]int{"": unknown, "platform": refused, "viewer": 200, "operator": 200, "admin": 200}},
		"Operation":   {"viewers may read", "GET", "/operations/x", map[string]int{"": unknown, "platform": refused, "viewer": 404, "operator": 404, "admin": 404}},
		"Cancel":      {"operators may intervene", "POST", "/operations/x/cancel", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"Retry":       {"operators may intervene", "POST", "/operations/x/retry", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"Skip":        {"operators may intervene", "POST", "/operations/x/skip", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"Expire":      {"operators may expire instances", "PUT", "/expire/service_instance/x", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 200, "admin": 200}},
		"Pool":        {"viewers may read", "GET", "/cloudaccounts", map[string]int{"": unknown, "platform": refused, "viewer": 409, "operator": 409, "admin": 409}},
		"CleanPool":   {"operators may clean up accounts", "POST", "/cloudaccounts/x/cleanup", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"Release":     {"operators may release accounts", "POST", "/cloudaccounts/x/release", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"Cleanup":     {"operators may clean up", "POST", "/leftovers/x/cleanup", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"Confirm":     {"operators may forget leftovers", "POST", "/leftovers/x/confirm", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"Admin":       {"admins have all roles", "POST", "/runtimes/x/adminkubeconfig", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 404}},
		"Account":     {"admins may see the amount of data", "GET", "/accounts/x", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 200}},
		"Erase":       {"admins may erase data", "POST", "/accounts/x/erase", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 404}},
		"Platforms":   {"admins see the users of platforms", "GET", "/platforms", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 200}},
		"Grant":       {"admins share instances", "POST", "/runtimes/x/grant", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 400}},
		"Revoke":      {"admins stop sharing", "POST", "/runtimes/x/revoke", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 400}},
		"Adopt":       {"admins take over clusters", "POST", "/shoots/x/adopt", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 400}},
		"Move":        {"admins move instances", "POST", "/runtimes/x/move", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 400}},
		"fleet":       {"operators may upgrade fleets", "POST", "/upgrade/kyma", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"clusters":    {"operators may upgrade fleets", "POST", "/upgrade/cluster", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"fleets":      {"viewers may see orchestrations", "GET", "/orchestrations", map[string]int{"": unknown, "platform": refused, "viewer": 200, "operator": 200}},
		"one fleet":   {"viewers may see orchestrations", "GET", "/orchestrations/x", map[string]int{"": unknown, "platform": refused, "viewer": 404}},
		"targets":     {"viewers may see orchestrations", "GET", "/orchestrations/x/operations", map[string]int{"": unknown, "platform": refused, "viewer": 404}},
		"target":      {"viewers may see orchestrations", "GET", "/orchestrations/x/operations/y", map[string]int{"": unknown, "platform": refused, "viewer": 404}},
		"stop":        {"operators may cancel orchestrations", "PUT", "/orchestrations/x/cancel", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 404}},
		"time":        {"operators may choose times of upgrades", "POST", "/runtimes/x/upgradeTime", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400}},
		"undo":        {"operators may undo orchestrations", "POST", "/orchestrations/x/undo", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 404}},
		"again":       {"operators may retry orchestrations", "POST", "/orchestrations/x/retry", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 404}},
		"Kyma":        {"operators may upgrade", "POST", "/runtimes/x/upgradeKyma", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 202, "admin": 202}},
		"Cluster":     {"operators may upgrade", "POST", "/runtimes/x/upgradeCluster", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 202, "admin": 202}},
		"Credentials": {"viewers may read", "GET", "/credentials", map[string]int{"": unknown, "platform": refused, "viewer": 200, "operator": 200, "admin": 200}},
		"Renew":       {"operators may renew", "POST", "/runtimes/x/renewCredentials", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"Catalog":     {"viewers may read", "GET", "/catalog", map[string]int{"": unknown, "platform": refused, "viewer": 200}},
		"Events":      {"viewers may read", "GET", "/events", map[string]int{"": unknown, "platform": refused, "viewer": 200}},
		"Webhooks":    {"operators see receivers", "GET", "/webhooks", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 200, "admin": 200}},
		"Webhook":     {"operators see receivers", "GET", "/webhooks/x", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 404}},
		"Undelivered": {"operators see receivers", "GET", "/webhooks/x/deliveries", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 404}},
		"NewWebhook":  {"admins choose receivers", "POST", "/webhooks", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 400}},
		"NoWebhook":   {"admins choose receivers", "DELETE", "/webhooks/x", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 404}},
		"Rotate":      {"admins see secrets", "POST", "/webhooks/x/rotate", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": refused, "admin": 404}},
		"Enable":      {"operators may enable", "POST", "/webhooks/x/enable", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 404}},
		"Test":        {"operators may test", "POST", "/webhooks/x/test", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 404}},
		"Replay":      {"operators may replay", "POST", "/webhooks/x/replay", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 404}},
		"Processes":   {"viewers may read", "GET", "/processes", map[string]int{"": unknown, "platform": refused, "viewer": 200}},
		"Quotas":      {"viewers may read", "GET", "/quotas", map[string]int{"": unknown, "platform": refused, "viewer": 200}},
		"Jobs":        {"viewers may read", "GET", "/jobs", map[string]int{"": unknown, "platform": refused, "viewer": 200}},
		"RunJob":      {"operators may run jobs", "POST", "/jobs/x/run", map[string]int{"": unknown, "platform": refused, "viewer": refused, "operator": 400, "admin": 400}},
		"Status":      {"viewers may read", "GET", "/status", map[string]int{"": unknown, "platform": refused, "viewer": 200}},
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
