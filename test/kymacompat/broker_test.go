package kymacompat

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/test/harness"
	"github.com/environment-broker/environment-broker/test/kymacompat/provisioner"
)

// TestOurBroker creates, updates and deletes instances of several providers with a Kyma Provisioner.
func TestOurBroker(t *testing.T) {
	plans := map[string]string{"aws": harness.PlanAWS, "azure": harness.PlanAzure, "gcp": harness.PlanGCP}

	harness.EachDatabase(t, func(t *testing.T, fresh harness.Database) {
		p := start(t, fresh, 200*time.Millisecond)

		eachPlan := func(do func(provider, plan string)) {
			for provider, plan := range plans {
				do(provider, plan)
			}
		}

		eachPlan(func(id, plan string) { p.Create(id, plan) })
		eachPlan(func(id, _ string) { p.WantSucceeded(id) })
		eachPlan(func(id, _ string) { p.Update(id, map[string]any{"parameters": map[string]any{"autoScalerMax": 13}}) })
		eachPlan(func(id, _ string) { p.WantSucceeded(id) })
		eachPlan(func(id, _ string) { wantRuntime(p, id, "13", "ProvisionNoInstall", "UpgradeShoot") })
		eachPlan(func(id, plan string) { p.Delete(id, plan) })
		eachPlan(func(id, _ string) { p.WantGone(id) })
		wantNoRuntime(p)
	})
}

// TestTenantThatCannotBeALabel orders instances like the open-source Service Manager, which sends "-" as the ID of the
// organization.
func TestTenantThatCannotBeALabel(t *testing.T) {
	t.Parallel()

	p := start(t, harness.SQLite, 200*time.Millisecond)
	order := harness.Order(harness.PlanAWS)
	order["organization_guid"], order["space_guid"], order["context"] = "-", "-", map[string]any{"platform": "sm"}

	p.Send(http.MethodPut, harness.InstancePath("one")+harness.Incomplete, order, http.StatusAccepted)
	p.WantSucceeded("one")

	if runtimes := p.provisioner.Runtimes(); len(runtimes) != 1 || runtimes[0].Tenant != "sha256-3973e022e93220f9212c18d0d0c543ae" {
		t.Errorf("got the runtimes %+v", runtimes)
	}

	p.Delete("one", harness.PlanAWS)
	p.WantGone("one")
	wantNoRuntime(p)
}

// TestReportOfDifferences checks that the report says which data a Kyma Provisioner cannot provide.
func TestReportOfDifferences(t *testing.T) {
	t.Parallel()

	p := start(t, harness.SQLite, 200*time.Millisecond)
	p.Create("one", harness.PlanAWS)
	p.WantSucceeded("one")

	reply := p.Send(http.MethodGet, "/differences", nil, http.StatusOK)
	if !strings.Contains(reply.Raw, `"data":[]`) || !strings.Contains(reply.Raw, "it is a Kyma Provisioner") {
		t.Errorf("got %s", reply.Raw)
	}
}

// TestSuspension suspends and resumes an instance. The suspension removes the runtime, and the resumption creates a runtime
// with the same name.
func TestSuspension(t *testing.T) {
	t.Parallel()

	p := start(t, harness.SQLite, 200*time.Millisecond)

	p.Create("tried", harness.PlanTrial)
	p.WantSucceeded("tried")

	name := p.provisioner.Runtimes()[0].Name

	p.Update("tried", map[string]any{"context": map[string]any{"active": false}})
	p.WantSucceeded("tried")
	wantNoRuntime(p)

	p.Update("tried", map[string]any{"context": map[string]any{"active": true}})
	p.WantSucceeded("tried")

	if runtimes := p.provisioner.Runtimes(); len(runtimes) != 1 || runtimes[0].Name != name {
		t.Errorf("the runtimes after resumption are %+v, want one named %s", runtimes, name)
	}

	p.Delete("tried", harness.PlanTrial)
	p.WantGone("tried")
	wantNoRuntime(p)
}

// TestFaults injects faults into calls. A Kyma Provisioner has no idempotency keys. When the broker repeats an order, Gardener
// rejects a second cluster with the same name. If the broker cannot identify the owner of the existing cluster, the operation
// fails with instructions.
func TestFaults(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		field  string
		faults []provisioner.Fault
		create string // state and description when the creation has ended
		remove string // state and description when the following deletion has ended
	}{
		"order unanswered": {
			reason: "the owner of the cluster is unknown, so an operator must check it; the description names the cluster",
			field:  "provisionRuntime", faults: []provisioner.Fault{provisioner.ResponseLost},
			create: "failed: a cluster named \"NAME\" already exists: look for it in Gardener, remove it by hand",
			remove: "failed: a cluster named \"NAME\" may be left over from the unfinished creation: look for it in Gardener and remove it by hand",
		},
		"order not delivered": {
			reason: "an unavailable Provisioner is retried",
			field:  "provisionRuntime", faults: []provisioner.Fault{provisioner.Unavailable, provisioner.Unavailable},
			create: "succeeded", remove: "succeeded",
		},
		"tenant rejected": {
			reason: "a rejection is permanent, and no runtime remains",
			field:  "provisionRuntime", faults: []provisioner.Fault{provisioner.TenantRejected},
			create: "failed: the Provisioner refused to create the runtime; operators can find the details in the timeline of the operation",
			remove: "succeeded",
		},
		"poll unanswered": {
			reason: "a failed poll is retried",
			field:  "runtimeOperationStatus", faults: []provisioner.Fault{provisioner.ResponseLost, provisioner.Unavailable},
			create: "succeeded", remove: "succeeded",
		},
		"removal unanswered": {
			reason: "a repeated removal finds the first one running, and then no runtime",
			field:  "deprovisionRuntime", faults: []provisioner.Fault{provisioner.ResponseLost},
			create: "succeeded", remove: "succeeded",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := start(t, harness.SQLite, 300*time.Millisecond)
			p.provisioner.Fail(tc.field, tc.faults...)

			p.Create("one", harness.PlanAWS)
			created := p.WaitForEnd("one")
			made := p.provisioner.Runtimes()

			if len(made) > 1 {
				t.Fatalf("%s: want at most one runtime, got %d", tc.reason, len(made))
			}

			wantEnd(t, tc.reason, tc.create, made, created)

			p.Delete("one", harness.PlanAWS)
			wantEnd(t, tc.reason, tc.remove, made, p.WaitForEnd("one"))

			if tc.remove == "succeeded" {
				wantNoRuntime(p)
			}
		})
	}
}

// TestUpgradeUnanswered drops the response to an upgrade. The broker repeats the upgrade after the first one has ended; the
// second upgrade changes nothing.
func TestUpgradeUnanswered(t *testing.T) {
	t.Parallel()

	p := start(t, harness.SQLite, 300*time.Millisecond)

	p.Create("one", harness.PlanAWS)
	p.WantSucceeded("one")
	p.provisioner.Fail("upgradeShoot", provisioner.ResponseLost)
	p.Update("one", map[string]any{"parameters": map[string]any{"autoScalerMax": 13}})
	p.WantSucceeded("one")

	wantRuntime(p, "aws", "13", "ProvisionNoInstall", "UpgradeShoot", "UpgradeShoot")
}

// TestPolls creates many slow runtimes of a tenant. The broker must respect its limit of requests per second, poll several
// operations with one request, and request the change feed only once.
func TestPolls(t *testing.T) {
	t.Parallel()

	const (
		instances = 12
		limit     = 2
	)

	started := time.Now()
	p := start(t, harness.SQLite, 4*time.Second, func(config *broker.Config) { config.Provisioner.PollLimit = limit })

	for i := range instances {
		p.Create(fmt.Sprintf("instance-%d", i), harness.PlanAWS)
	}

	for i := range instances {
		p.WantSucceeded(fmt.Sprintf("instance-%d", i))
	}

	feeds, polled := 0, 0

	var requests []provisioner.Call

	counted := map[int]bool{}

	for _, call := range p.provisioner.Calls() {
		switch {
		case strings.Contains(call.Rejected, "operationChanges"):
			feeds++
		case call.Field == "runtimeOperationStatus":
			polled++

			if !counted[call.Request] {
				counted[call.Request] = true
				requests = append(requests, call)
			}
		}
	}

	if feeds != 1 {
		t.Errorf("the broker requested the change feed %d times, want once in five minutes", feeds)
	}

	if polled < instances || len(requests) >= polled {
		t.Errorf("%d requests asked for %d operations of %d instances", len(requests), polled, instances)
	}

	// The limit applies to the first burst, and then to each second. A slow machine can delay requests and send several together,
	// but it never sends a request early.
	for i, request := range requests {
		if earliest := time.Duration(i+1-limit) * time.Second / limit; request.At.Sub(started) < earliest {
			t.Errorf("request %d came after %s, but is due after %s", i, request.At.Sub(started), earliest)
		}
	}
}

// TestPollsOfTenants creates runtimes of several tenants concurrently. The broker must not poll operations of several tenants
// with one request. The simulated Provisioner rejects such requests; the Kyma Provisioner would make the tenant of the request
// the owner of all runtimes.
func TestPollsOfTenants(t *testing.T) {
	t.Parallel()

	const instances = 12

	p := start(t, harness.SQLite, time.Second, func(config *broker.Config) { config.Provisioner.PollLimit = 2 })
	tenantOf := func(i int) string { return fmt.Sprintf("tenant-%d", i%3) }
	name := func(i int) string { return fmt.Sprintf("instance-%d", i) }

	for i := range instances {
		order := harness.Order(harness.PlanAWS)
		order["organization_guid"] = tenantOf(i)
		p.Send(http.MethodPut, harness.InstancePath(name(i))+harness.Incomplete, order, http.StatusAccepted)
	}

	owned := map[string]int{}

	for i := range instances {
		p.WantSucceeded(name(i))
	}

	for _, runtime := range p.provisioner.Runtimes() {
		owned[runtime.Tenant]++
	}

	if diff := cmp.Diff(map[string]int{tenantOf(0): 4, tenantOf(1): 4, tenantOf(2): 4}, owned); diff != "" {
		t.Errorf("runtimes by tenant: -want +got\n%s", diff)
	}
}

// wantRuntime fails the test unless there is exactly one runtime, with the given provider, autoScalerMax and operations.
func wantRuntime(p env, provider, autoScalerMax string, operations ...string) {
	p.Helper()

	var got []string

	for _, runtime := range p.provisioner.Runtimes() {
		if runtime.Config["provider"] == provider {
			got = append(got, fmt.Sprint(runtime.Config["autoScalerMax"]), strings.Join(runtime.Operations, " "))
		}
	}

	if diff := cmp.Diff([]string{autoScalerMax, strings.Join(operations, " ")}, got); diff != "" {
		p.Errorf("the runtime on %s: -want +got\n%s", provider, diff)
	}
}

func wantNoRuntime(p env) {
	p.Helper()

	if runtimes := p.provisioner.Runtimes(); len(runtimes) != 0 {
		p.Errorf("want no runtime, got %+v", runtimes)
	}
}

// wantEnd checks the state and the description of an ended operation. It replaces NAME in want with the name of the cluster.
func wantEnd(t *testing.T, reason, want string, made []provisioner.Runtime, got harness.Reply) {
	t.Helper()

	state, text, _ := strings.Cut(want, ": ")
	if len(made) == 1 {
		text = strings.ReplaceAll(text, "NAME", made[0].Name)
	}

	if got.Text("state") != state || !strings.Contains(got.Text("description"), text) {
		t.Errorf("%s: want %s: %s\ngot %d %v", reason, state, text, got.Status, got.Body)
	}
}

// TestRangesThatGardenerChooses checks that the broker does not report the IP ranges of the plan. A Kyma Provisioner has no
// fields for these ranges, so Gardener chooses them.
func TestRangesThatGardenerChooses(t *testing.T) {
	t.Parallel()

	p := start(t, harness.SQLite, 200*time.Millisecond)

	p.Create("one", harness.PlanAWS)
	p.WantSucceeded("one") // from then on the broker knows that it calls a Kyma Provisioner

	resolved, _ := p.Send(http.MethodPost, harness.InstancePath("two")+"/validate", harness.Order(harness.PlanAWS), http.StatusOK).Body["resolved"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"nodes": "10.250.0.0/16"}, resolved["networking"]); diff != "" {
		t.Errorf("the resolved order: -want +got\n%s", diff)
	}

	if instance := p.Send(http.MethodGet, harness.InstancePath("one"), nil, http.StatusOK); strings.Contains(fmt.Sprint(instance.Body), "10.96.") {
		t.Errorf("the fetch of the instance returned %d %v", instance.Status, instance.Body)
	}

	if ordered := p.provisioner.Runtimes()[0].Config; ordered["podsCidr"] != nil || ordered["servicesCidr"] != nil {
		t.Errorf("the Provisioner received %v", ordered)
	}
}
