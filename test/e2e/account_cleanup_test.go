package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecleanup"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/test/harness"
)

// cleanup is a broker with an account pool and a cleanup hook, and a Provisioner. Both services run as processes, with a fake
// garden. The pool has one account.
type cleanup struct {
	platform

	hook   *fakecleanup.Hook
	garden *fakegarden.Memory
	// status is the URL of the broker's metrics.
	status string
}

func startCleanup(t *testing.T) *cleanup {
	t.Helper()

	c := &cleanup{hook: fakecleanup.New(), garden: harness.StartGarden(t, 100*time.Millisecond)}
	kubeconfig := harness.ServeGarden(t, c.garden)

	if err := c.garden.Client().Create(t.Context(), poolAccount(harness.GardenNamespace(), 0)); err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(c.hook)
	t.Cleanup(server.Close)

	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("rule: [aws, azure, azure_lite, gcp, sap-converged-cloud, free, preview, trial]"), 0o600); err != nil {
		t.Fatal(err)
	}

	address, status, provisioner := harness.FreeAddress(t), harness.FreeAddress(t), harness.FreeAddress(t)
	c.platform, c.status = newPlatform(t, "http://"+address), "http://"+status

	harness.Launch(t, append(harness.DatabaseVariables(harness.SQLite(t, "provisioner")),
		"APP_ADDRESS="+provisioner, "APP_STATUS_ADDRESS="+harness.FreeAddress(t), "APP_SHUTDOWN_DELAY=0s",
		"APP_GARDENER_PROJECT="+fakegarden.DefaultProject, "APP_GARDENER_KUBECONFIG_PATH="+kubeconfig), harness.Build(t, "provisioner"))
	harness.Launch(t, append(harness.DatabaseVariables(harness.SQLite(t, "broker")),
		"APP_ADDRESS="+address, "APP_STATUS_ADDRESS="+status, "APP_SHUTDOWN_DELAY=0s",
		"APP_AUTH_BASIC_USERS="+harness.User+":"+harness.Password+":osb+admin", "APP_PROVISIONER_URL=http://"+provisioner+"/graphql",
		"APP_GARDENER_PROJECT="+fakegarden.DefaultProject, "APP_GARDENER_KUBECONFIG_PATH="+kubeconfig,
		"APP_ACCOUNT_POOL_RULES_FILE="+rules, "APP_ACCOUNT_POOL_CLEANUP_URL="+server.URL+fakecleanup.Path,
		"APP_ACCOUNT_POOL_CLEANUP_USER="+fakecleanup.User, "APP_ACCOUNT_POOL_CLEANUP_PASSWORD="+fakecleanup.Password,
		"APP_ACCOUNT_POOL_CLEANUP_TIMEOUT=1s"), harness.Build(t, "broker"))

	c.Until("the broker", func() bool {
		_, err := c.Try(http.MethodGet, "/v2/catalog", nil)

		return err == nil
	})

	return c
}

// order orders an instance for the given tenant.
func (c *cleanup) order(id, tenant string) {
	c.Helper()

	order := harness.Order(harness.PlanAWS)
	order["context"] = map[string]any{"globalaccount_id": tenant, "subaccount_id": "sub-" + tenant}
	c.Send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, order, http.StatusAccepted)
}

// labels returns the account's tenant, and whether the account is dirty, as the account's labels say.
func (c *cleanup) labels() (tenant string, dirty bool) {
	c.Helper()

	account := &securityv1alpha1.CredentialsBinding{}
	if err := c.garden.Client().Get(c.Context(), client.ObjectKeyFromObject(poolAccount(harness.GardenNamespace(), 0)), account); err != nil {
		c.Fatal(err)
	}

	return account.Labels[gardenclient.LabelTenant], account.Labels[gardenclient.LabelDirty] == "true"
}

// wantLabels checks the labels of the account.
func (c *cleanup) wantLabels(reason, tenant string, dirty bool) {
	c.Helper()

	if gotTenant, gotDirty := c.labels(); gotTenant != tenant || gotDirty != dirty {
		c.Errorf("%s: the account has the tenant %q, dirty: %t", reason, gotTenant, gotDirty)
	}
}

// ask runs a cleanup of the account as an operator, and returns the result that the broker has recorded.
func (c *cleanup) ask() operatorapi.CloudAccountCleanup {
	c.Helper()

	reply, err := c.Try(http.MethodPost, "/cloudaccounts/pool-000/cleanup", operatorapi.Justification{Reason: "ticket 4711"})
	if err != nil {
		c.Fatal(err)
	}

	if reply.Status != http.StatusOK {
		return c.recorded()
	}

	var answer operatorapi.CloudAccountCleanup

	c.decode(reply.Raw, &answer)

	return answer
}

// recorded returns the result of the last cleanup as `ebctl accounts cleanup --dry-run` shows it.
func (c *cleanup) recorded() operatorapi.CloudAccountCleanup {
	c.Helper()

	var list operatorapi.CloudAccountCleanupList

	c.decode(c.ebctl("accounts", "cleanup", "--dry-run", "--output", "json"), &list)

	if len(list.Data) != 1 {
		c.Fatalf("%d accounts are dirty", len(list.Data))
	}

	return list.Data[0]
}

// releases returns the audit log entries about releases of accounts.
func (c *cleanup) releases() []operatorapi.AuditEntry {
	c.Helper()

	var list operatorapi.AuditList

	c.decode(c.Send(http.MethodGet, "/audit?action=release", nil, http.StatusOK).Raw, &list)

	return list.Data
}

// metrics returns the metrics of the broker.
func (c *cleanup) metrics() string {
	c.Helper()

	reply, err := harness.Endpoint{URL: c.status}.Do(harness.Call{Method: http.MethodGet, Path: "/metrics"})
	if err != nil || reply.Status != http.StatusOK {
		c.Fatalf("metrics: %d, %v", reply.Status, err)
	}

	return reply.Raw
}

// TestCleanupOfAccounts deletes the only instance of a tenant while another tenant waits for its account. The account stays dirty until
// the cleanup hook confirms that it is empty, whatever else the hook responds.
func TestCleanupOfAccounts(t *testing.T) {
	t.Parallel()

	c := startCleanup(t)
	first, second := tenancy.Label("first"), tenancy.Label("second")

	c.order("before", "first")
	c.WantSucceeded("before")
	c.wantLabels("a tenant uses the account", first, false)

	c.order("after", "second")
	c.Until("the next tenant waits for an account", func() bool { return strings.Contains(c.explain(c.lastOperation("after")), "no account is free") })

	if _, problems, code := c.tryEbctl("accounts", "cleanup", "pool-000", "--reason", "too early"); code == 0 || !strings.Contains(problems, "no dirty account") {
		t.Errorf("an account in use is cleaned up: %d, %s", code, problems)
	}

	c.Delete("before", harness.PlanAWS)
	c.WantGone("before")
	c.wantLabels("the last instance of the tenant is gone", first, true)

	cases := []struct {
		reason      string
		fault       simulator.Fault
		state, text string
	}{
		{"the hook refuses", simulator.Fault{Body: `{"state": "failed", "message": "a bucket is locked"}`}, "failed", "a bucket is locked"},
		{"the hook rejects the credentials", simulator.Fault{Status: http.StatusUnauthorized}, "unanswered", "must correct APP_ACCOUNT_POOL_CLEANUP_USER"},
		{"the hook is unreachable", simulator.Fault{Unsent: true}, "unanswered", "cannot be reached"},
		{"the hook is slow", simulator.Fault{Delay: harness.Patience}, "unanswered", "did not respond within 1s"},
		{"the response is garbage", simulator.Fault{Body: "<html>clean</html>"}, "unanswered", "not the expected JSON"},
		{"the state is unknown", simulator.Fault{Body: `{"state": "cleanish"}`}, "unanswered", "contains no state"},
		{"the account is not empty yet", simulator.Fault{}, "pending", "being emptied"},
		{"the confirmation is lost", simulator.Fault{Lost: true}, "unanswered", "cannot be reached"},
		{"the hook begins again", simulator.Fault{}, "pending", "being emptied"},
	}

	for number, each := range cases {
		if each.fault != (simulator.Fault{}) {
			c.hook.Inject(each.fault)
		}

		answer := c.ask()
		if string(answer.State) != each.state || !strings.Contains(answer.Message, each.text) || answer.Attempts != number+1 {
			t.Errorf("%s: %+v", each.reason, answer)
		}

		// The database rounds times, so they may differ slightly.
		if diff := cmp.Diff(answer, c.recorded(), cmpopts.EquateApproxTime(time.Millisecond)); diff != "" {
			t.Errorf("%s: answered and recorded differ, -want +got\n%s", each.reason, diff)
		}

		c.wantLabels(each.reason, first, true)
	}

	if entries := c.releases(); len(entries) != 0 {
		t.Errorf("the audit log has %+v", entries)
	}

	if output := c.ebctl("accounts", "cleanup", "pool-000", "--reason", "ticket 4711"); !strings.Contains(output, "clean") {
		t.Errorf("ebctl shows %s", output)
	}

	entries := c.releases()
	if len(entries) != 1 || entries[0].Status != http.StatusOK || entries[0].Reason != "ticket 4711" || entries[0].AccountID != first ||
		entries[0].Before["account"] != "pool-000" || entries[0].By.User != harness.User {
		t.Errorf("the audit log has %+v", entries)
	}

	c.WantSucceeded("after")
	c.wantLabels("the next tenant uses the account", second, false)

	shoots := harness.Shoots(t, c.garden)
	if len(shoots) != 1 || *shoots[0].Spec.CredentialsBindingName != "pool-000" {
		t.Errorf("the Shoots are %+v", shoots)
	}

	metrics := c.metrics()
	for state, count := range map[string]int{"clean": 1, "failed": 1, "pending": 2, "unanswered": 6} {
		if want := fmt.Sprintf(`environment_broker_pool_cleanups_total{result=%q} %d`, state, count); !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}
