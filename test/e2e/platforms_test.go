package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestPlatforms orders an instance with a real runtime on one platform, and uses it with the credentials of another: before and after it
// is shared, and after it was moved. A change of the platforms file must take effect without a restart.
func TestPlatforms(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "platforms.yaml")
	write := func(content string) {
		t.Helper()

		if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}

		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}

	const platforms = "platforms:\n- {name: alpha, users: [" + harness.User + "], regions: [cf-eu10, cf-us10]}\n- {name: beta, users: [beta]}\n"

	write(platforms)

	e := start(t, harness.SQLite, 0, func(broker *broker.Config, _ *provisioner.Config) {
		broker.AuthBasicUsers = secret.String(harness.User + ":" + harness.Password + ":osb+admin,beta:secret,late:secret")
		broker.PlatformsFile = file
	})
	e.Create("i1", harness.PlanAWS)
	e.WantSucceeded("i1")

	send := func(user string, want int, method, path, body string) harness.Reply {
		t.Helper()

		reply, err := harness.Endpoint{URL: e.URL, User: user, Password: "secret"}.Do(harness.Call{Method: method, Path: path, Body: body})
		if err != nil {
			t.Fatal(err)
		}

		if reply.Status != want {
			t.Errorf("%s: %s %s: want %d, got %d %s", user, method, path, want, reply.Status, reply.Raw)
		}

		return reply
	}

	const bind = `{"service_id":"` + harness.ServiceID + `","plan_id":"` + harness.PlanAWS + `"}`

	instance, binding := harness.InstancePath("i1"), harness.BindingPath("i1", "b1")
	forOther := func() {
		t.Helper()

		missing := send("beta", 404, "GET", harness.InstancePath("missing"), "")
		if got := send("beta", 404, "GET", instance, ""); got.Raw != missing.Raw {
			t.Errorf("the response differs from that for a missing instance: %s, %s", got.Raw, missing.Raw)
		}

		send("beta", 404, "GET", instance+"/last_operation", "")
		send("beta", 404, "PATCH", instance+harness.Incomplete, `{"service_id":"`+harness.ServiceID+`"}`)
		send("beta", 410, "DELETE", harness.DeletionPath("i1", harness.PlanAWS), "")
		send("beta", 404, "PUT", binding, bind)
		send("beta", 404, "GET", binding, "")
		send("late", 403, "GET", instance, "")
	}

	forOther()
	e.Send(http.MethodGet, "/oauth/cf-us10"+instance, nil, http.StatusNotFound)
	e.Send(http.MethodGet, "/oauth/cf-ap10"+instance, nil, http.StatusForbidden)
	e.Send(http.MethodGet, "/oauth/cf-eu10"+instance, nil, http.StatusOK)

	change := func(verb, platform string) {
		t.Helper()
		e.Send(http.MethodPost, "/runtimes/i1/"+verb, map[string]any{"platform": platform, "reason": "a test"}, http.StatusOK)
	}

	change("grant", "beta")

	if kubeconfig := send("beta", 201, "PUT", binding, bind).Raw; !strings.Contains(kubeconfig, "kubeconfig") {
		t.Errorf("the binding has no kubeconfig: %s", kubeconfig)
	}

	change("revoke", "beta")
	forOther()
	change("move", "beta")
	send("beta", 200, "GET", binding, "")
	e.Send(http.MethodGet, instance, nil, http.StatusNotFound)

	write(platforms + "- {name: gamma, users: [late]}\n")

	reloaded := func() bool {
		reply, err := harness.Endpoint{URL: e.URL, User: "late", Password: "secret"}.Do(harness.Call{Method: "GET", Path: "/v2/catalog"})

		return err == nil && reply.Status == http.StatusOK
	}
	harness.Until(t, "the changed file", reloaded)

	deletion := send("beta", 202, "DELETE", harness.DeletionPath("i1", harness.PlanAWS), "").Text("operation")

	harness.Until(t, "the end of the deletion", func() bool {
		return send("beta", 200, "GET", instance+"/last_operation?operation="+deletion, "").Text("state") == "succeeded"
	})
	e.Send(http.MethodGet, instance+"/last_operation?operation="+deletion, nil, http.StatusNotFound)

	if left := e.shoots(); len(left) > 0 {
		t.Errorf("the deletion left %d Shoots", len(left))
	}
}
