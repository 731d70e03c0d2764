package broker_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

func TestD8D14D15D16ProvisionIsAccepted(t *testing.T) {
	onEach(t, func(b *bench) {
		got := b.want("a new instance is made in the background", b.put(instanceID, order()), 202)

		want := map[string]any{
			"operation":     got.text("operation"),
			"dashboard_url": "https://dashboard.example.com/?kubeconfigID=" + instanceID,
			"metadata": map[string]any{"labels": map[string]any{
				"Name": "mine", "KubeconfigURL": "https://broker.example.com/kubeconfig/" + instanceID,
			}},
		}
		if diff := cmp.Diff(want, got.Body); diff != "" {
			b.Errorf("body: -want +got\n%s", diff)
		}

		instance := b.stored(instanceID)
		if !regexp.MustCompile(`^c-[0-9a-f]{7}$`).MatchString(instance.ShootName) {
			b.Errorf("the cluster's name is %q", instance.ShootName)
		}

		records := b.carried(instanceID)
		if len(records) != 1 || records[0].ID != got.text("operation") || records[0].Kind != environment.KindProvision {
			b.Fatalf("operations: %+v", records)
		}

		var data environment.Data
		if err := json.Unmarshal(records[0].Payload, &data); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(environment.Data{Instance: instance, Provisioning: records[0].ID}, data); diff != "" {
			b.Errorf("data of the operation: -want +got\n%s", diff)
		}

		if b.wakes.Load() != 1 {
			b.Errorf("the engine was woken %d times, not once", b.wakes.Load())
		}
	})
}

func TestD8EveryPlanNeedsNoParameter(t *testing.T) {
	for name, plan := range map[string]string{"aws": planAWS, "azure": planAzure, "gcp": planGCP, "trial": planTrial} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			body := `{"service_id":"` + serviceID + `","plan_id":"` + plan + `","organization_guid":"o","space_guid":"s","parameters":null}`

			b.want("a plain create succeeds on each plan", b.put(instanceID, body), 202)

			instance := b.stored(instanceID)
			got := []string{instance.GlobalAccountID, instance.SubAccountID, instance.Name, instance.PlatformRegion, instance.PlanName}

			if diff := cmp.Diff([]string{"o", "s", "0f5b2c7e", "cf-eu10", name}, got); diff != "" {
				b.Errorf("tenant, subaccount, name, platform region, plan: -want +got\n%s", diff)
			}
		})
	}
}

func TestD17EachIDIsAResource(t *testing.T) {
	b := newBench(t)

	first := b.want("one", b.put("one", order()), 202)
	second := b.want("another", b.put("another", order()), 202)

	if first.text("operation") == second.text("operation") || first.text("dashboard_url") == second.text("dashboard_url") {
		b.Errorf("two instances share something: %s, %s", first.Raw, second.Raw)
	}

	if b.stored("one").ShootName == b.stored("another").ShootName {
		b.Error("two instances share a cluster")
	}
}

func TestD2ToD6ProvisionIsRefused(t *testing.T) {
	long := strings.Repeat("x", 300)

	cases := map[string]struct {
		reason string
		body   string
		want   string
	}{
		"D2Missing":          {"service_id is needed", order(with("service_id", nil)), "service_id is missing."},
		"D2Empty":            {"service_id may not be empty", order(with("service_id", "")), "service_id is missing."},
		"D2Null":             {"null is nothing", strings.Replace(order(), `"`+serviceID+`"`, "null", 1), "service_id is missing."},
		"D2Number":           {"service_id is a string", order(with("service_id", 5)), "service_id has to be a string."},
		"D2Unknown":          {"service_id is of the catalog", order(with("service_id", "x")), `service_id "x" is not in the catalog`},
		"D3Missing":          {"plan_id is needed", order(with("plan_id", nil)), "plan_id is missing."},
		"D3Empty":            {"plan_id may not be empty", order(with("plan_id", "")), "plan_id is missing."},
		"D3Unknown":          {"plan_id is of the offering", order(with("plan_id", serviceID)), "is not a plan of the service kymaruntime"},
		"D3Long":             {"an id may be long, its refusal not", order(with("plan_id", long)), "plan_id"},
		"D4NoOrganization":   {"somebody has to be named", order(with("organization_guid", nil)), "organization_guid is missing."},
		"D4EmptySpace":       {"an empty GUID names nobody", order(with("space_guid", "")), "space_guid is missing."},
		"D4Number":           {"a GUID is a string", order(with("organization_guid", 1)), "organization_guid has to be a string."},
		"D5ParametersArray":  {"parameters are an object", order(with("parameters", []int{1})), "parameters has to be an object."},
		"D5ParametersText":   {"parameters are an object", order(with("parameters", "x")), "parameters has to be an object."},
		"D5ContextText":      {"context is an object", order(with("context", "x")), "context has to be an object."},
		"D5ContextField":     {"what is read of the context is a string", order(with("context", map[string]any{"globalaccount_id": 5})), "context.globalaccount_id has to be a string."},
		"D5Maintenance":      {"maintenance_info is an object", order(with("maintenance_info", 5)), "maintenance_info has to be an object."},
		"D5MaintenanceField": {"its version is a string", order(with("maintenance_info", map[string]any{"version": 1})), "maintenance_info.version has to be a string."},
		"D6Unknown":          {"unknown parameters are no parameters", order(with("parameters", map[string]any{"targetSecret": "x"})), "'targetSecret' not allowed"},
		"D6Type":             {"types are those of the schema", order(with("parameters", map[string]any{"autoScalerMin": "4"})), "autoScalerMin: got string, want integer"},
		"D6Range":            {"so are ranges", order(with("parameters", map[string]any{"autoScalerMin": 1})), "autoScalerMin: minimum: got 1, want 3"},
		"D6Together":         {"and what belongs together", order(with("parameters", map[string]any{"autoScalerMax": 3, "autoScalerMin": 9})), "autoScalerMin 9 is greater than autoScalerMax 3"},
		"ControlCharacter":   {"an account is stored in the clear", order(with("organization_guid", "a\x00b")), "control characters"},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)

			got := b.want(test.reason, b.put(instanceID, test.body), 400)
			if !strings.Contains(got.text("description"), test.want) {
				b.Errorf("\n%s\nwant a description with %q, got %q", test.reason, test.want, got.text("description"))
			}

			b.want("A15: nothing was made", b.get(instanceID), 404)
			b.want("A15: the id is free", b.put(instanceID, order()), 202)
		})
	}
}

func TestD4TenantOfTheInstance(t *testing.T) {
	type tenancy struct{ Tenant, SubAccount string }

	without := map[string]any{"organization_guid": nil, "space_guid": nil}

	cases := map[string]struct {
		reason  string
		strict  bool
		context map[string]any
		change  map[string]any
		status  int
		want    tenancy
	}{
		"Account":         {reason: "BTP names the account in the context", context: map[string]any{"globalaccount_id": "ga", "subaccount_id": "sa"}, change: without, status: 202, want: tenancy{"ga", "sa"}},
		"AccountOnly":     {reason: "the account is enough", context: map[string]any{"globalaccount_id": "ga"}, change: without, status: 202, want: tenancy{"ga", ""}},
		"AccountFirst":    {reason: "the context counts before the deprecated fields", context: map[string]any{"globalaccount_id": "ga", "subaccount_id": "sa"}, status: 202, want: tenancy{"ga", "sa"}},
		"Mixed":           {reason: "each half has its own fallback", context: map[string]any{"globalaccount_id": "ga"}, status: 202, want: tenancy{"ga", "space-1"}},
		"Organization":    {reason: "Cloud Foundry sends the GUIDs", context: nil, status: 202, want: tenancy{"org-1", "space-1"}},
		"Cluster":         {reason: "Kubernetes names cluster and namespace", context: map[string]any{"platform": "kubernetes", "clusterid": "c", "namespace": "n"}, change: without, status: 202, want: tenancy{"c", "n"}},
		"GUIDsAndCluster": {reason: "the organization counts before the cluster", context: map[string]any{"clusterid": "c", "namespace": "n"}, status: 202, want: tenancy{"org-1", "space-1"}},
		"Nobody":          {reason: "somebody has to pay", context: map[string]any{"platform": "x"}, change: without, status: 400},
		"Strict":          {reason: "strict insists on the GUIDs", strict: true, context: map[string]any{"globalaccount_id": "ga"}, change: without, status: 400},
		"StrictGiven":     {reason: "strict takes both", strict: true, context: map[string]any{"globalaccount_id": "ga"}, status: 202, want: tenancy{"ga", "space-1"}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(options *broker.Options) { options.Strict = test.strict })

			b.want(test.reason, b.put(instanceID, order(with("context", test.context), test.change)), test.status)

			if test.status != 202 {
				return
			}

			instance := b.stored(instanceID)
			if diff := cmp.Diff(test.want, tenancy{instance.GlobalAccountID, instance.SubAccountID}); diff != "" {
				b.Errorf("\n%s\ntenancy: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

func TestC1D9ProvisionNeedsAnAsynchronousPlatform(t *testing.T) {
	for _, query := range []string{"", "?accepts_incomplete=false", "?accepts_incomplete=", "?accepts_incomplete=TRUE"} {
		b := newBench(t)

		got := b.want("the runtime is not made while the platform waits",
			b.do(call{method: "PUT", path: path(instanceID) + query, body: order()}), 422, "AsyncRequired")

		want := "This service plan requires client support for asynchronous service operations."
		if got.text("description") != want {
			b.Errorf("clients compare the sentence: want %q, got %q", want, got.text("description"))
		}

		b.want("A15: nothing was made", b.poll(instanceID, ""), 404)
	}
}

func TestD10D12RepeatedProvision(t *testing.T) {
	onEach(t, func(b *bench) {
		first := b.want("a new instance", b.put(instanceID, order()), 202)

		again := order(with("context", map[string]any{"instance_name": "renamed", "platform": "cloudfoundry"}))
		again = strings.Replace(again, `"autoScalerMin":4,"region":"eu-west-1"`, `"region":"eu-west-1", "autoScalerMin": 4.0`, 1)

		second := b.want("D10: the same request while it is pending", b.put(instanceID, again), 202)
		if diff := cmp.Diff(first.Body, second.Body); diff != "" {
			b.Errorf("D10: the same request has another answer: -first +second\n%s", diff)
		}

		b.move(first.text("operation"), process.InProgress)

		third := b.want("D10: the same request while it runs", b.put(instanceID, again), 202)
		if third.text("operation") != first.text("operation") {
			b.Errorf("D10: another operation: %s", third.Raw)
		}

		b.want("C1: it cannot be answered at once", b.do(call{method: "PUT", path: path(instanceID), body: order()}), 422, "AsyncRequired")

		b.move(first.text("operation"), process.Succeeded)

		ready := b.want("D12: the same request once it is ready", b.put(instanceID, again), 200)

		delete(first.Body, "operation")

		if diff := cmp.Diff(first.Body, ready.Body); diff != "" {
			b.Errorf("D12: the body is to be given again, without an operation: -want +got\n%s", diff)
		}

		b.want("D12: it can be answered at once", b.do(call{method: "PUT", path: path(instanceID), body: order()}), 200)

		if b.wakes.Load() != 1 || len(b.carried(instanceID)) != 1 {
			b.Errorf("repeated requests began something: %d wake-ups, operations %+v", b.wakes.Load(), b.carried(instanceID))
		}
	})
}

func TestD13AnotherOrderForTheSameID(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   string
		body   string
	}{
		"Plan":         {reason: "another plan", body: order(with("plan_id", planGCP), with("parameters", nil))},
		"Parameters":   {reason: "other parameters", body: order(with("parameters", map[string]any{"region": "eu-west-1"}))},
		"NoParameters": {reason: "no parameters", body: order(with("parameters", nil))},
		"Organization": {reason: "another organization", body: order(with("organization_guid", "other"))},
		"Space":        {reason: "another space", body: order(with("space_guid", "other"))},
		"Region":       {reason: "another region of the platform", path: "/oauth/cf-us10", body: order()},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			operation := b.want("the first order", b.put(instanceID, order()), 202).text("operation")
			other := call{method: "PUT", path: test.path + path(instanceID) + "?accepts_incomplete=true", body: test.body}

			b.want(test.reason+" while it runs", b.do(other), 409)
			b.move(operation, process.Succeeded)
			b.want(test.reason+" once it is ready", b.do(other), 409)
			b.want("A15: the instance is as it was", b.put(instanceID, order()), 200)
		})
	}
}

func TestD11MaintenanceInfo(t *testing.T) {
	cases := map[string]struct {
		reason string
		info   any
		status int
		code   string
	}{
		"Right":   {reason: "the version of the catalog passes", info: map[string]any{"version": "1.0.0", "description": "x"}, status: 202},
		"Wrong":   {reason: "another version is a conflict", info: map[string]any{"version": "0.0.0"}, status: 422, code: "MaintenanceInfoConflict"},
		"Empty":   {reason: "M5: an object without a version is none", info: map[string]any{}, status: 202},
		"Without": {reason: "other fields do not matter", info: map[string]any{"description": "x"}, status: 202},
		"Null":    {reason: "null is none", info: json.RawMessage("null"), status: 202},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.want(test.reason, b.put(instanceID, order(with("maintenance_info", test.info))), test.status, test.code)
		})
	}
}

func TestD19AFailedProvisionIsNoInstance(t *testing.T) {
	for _, state := range []process.State{process.Failed, process.Canceled} {
		t.Run(string(state), func(t *testing.T) {
			b := newBench(t)
			operation := b.want("the first order", b.put(instanceID, order()), 202).text("operation")
			b.move(operation, state)

			got := b.want("it is neither ready nor made anew", b.put(instanceID, order()), 409)
			if !strings.Contains(got.text("description"), "Delete it") {
				b.Errorf("the way out is not told: %s", got.Raw)
			}

			b.want("another order is another matter", b.put(instanceID, order(with("parameters", nil))), 409)

			b.deleted(instanceID)
			b.want("J12, D18: deleted, it can be made anew", b.put(instanceID, order()), 202)
		})
	}
}

func TestD18AnIDIsFreeAgainAfterItsDeletion(t *testing.T) {
	onEach(t, func(b *bench) {
		first := b.provisioned(instanceID)
		shoot := b.stored(instanceID).ShootName

		deletion := b.want("a deletion", b.remove(instanceID), 202).text("operation")
		b.want("C4: not while it is deleted", b.put(instanceID, order()), 422, "ConcurrencyError")
		b.forget(instanceID)
		b.want("C4: not while its deletion is not recorded", b.put(instanceID, order()), 422, "ConcurrencyError")
		b.move(deletion, process.Succeeded)

		second := b.want("anew, and in another way", b.put(instanceID, order(with("parameters", nil))), 202).text("operation")
		if first == second || b.stored(instanceID).ShootName == shoot {
			b.Error("the new instance took over something of the old one")
		}

		b.want("C8: the new creation is told", b.poll(instanceID, second), 200)
		b.want("C8: the old deletion is gone", b.poll(instanceID, deletion), 410)
		b.move(second, process.Succeeded)
		b.want("it is ready", b.get(instanceID), 200)
	})
}

func TestAfterAFailedDeletionNothingIsReady(t *testing.T) {
	b := newBench(t)
	b.provisioned(instanceID)
	b.move(b.remove(instanceID).text("operation"), process.Failed)

	got := b.want("half of it may be gone", b.put(instanceID, order()), 409)
	if !strings.Contains(got.text("description"), "Delete it again") {
		b.Errorf("the way out is not told: %s", got.Raw)
	}
}

func TestRegionOfThePath(t *testing.T) {
	for form, want := range map[string]string{
		"/v2": "cf-eu10", "/oauth/v2": "cf-eu10", "/oauth/cf-us10/v2": "cf-us10", "/oauth/cf%2Dap21/v2": "cf-ap21",
	} {
		b := newBench(t)
		b.want("every path form orders", b.do(call{
			method: "PUT", path: form + "/service_instances/" + instanceID + "?accepts_incomplete=true",
			body: order(with("plan_id", planTrial), with("parameters", nil)),
		}), 202)

		if got := b.stored(instanceID).PlatformRegion; got != want {
			b.Errorf("%s: want region %q, got %q", form, want, got)
		}
	}
}

func TestAdministrator(t *testing.T) {
	cases := map[string]struct {
		reason  string
		context map[string]any
		header  string
		want    []string
	}{
		"Context":    {reason: "BTP names the user", context: map[string]any{"user_id": "anna@example.com"}, header: "cloudfoundry eyJ1c2VyX2lkIjoiYmVydCJ9", want: []string{"anna@example.com"}},
		"Originator": {reason: "others name the user in the header", header: "cloudfoundry eyJ1c2VyX2lkIjoiYmVydCJ9", want: []string{"bert"}},
		"Nobody":     {reason: "nobody is nobody", want: []string{}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.want(test.reason, b.do(call{
				method: "PUT", path: path(instanceID) + "?accepts_incomplete=true", body: order(with("context", test.context)),
				header: map[string]string{"X-Broker-API-Originating-Identity": test.header},
			}), 202)

			if diff := cmp.Diff(test.want, b.stored(instanceID).Request.Cluster.Administrators); diff != "" {
				b.Errorf("\n%s\nadministrators: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

func TestOrderWithBothKindsOfNumbers(t *testing.T) {
	for _, number := range []string{"4", "4.0", "4e0"} {
		b := newBench(t)
		status := 202

		if number != "4" {
			status = 400 // an integer of draft 4 has no fraction and no exponent
		}

		body := strings.Replace(order(), `"autoScalerMin":4`, fmt.Sprintf(`"autoScalerMin":%s`, number), 1)
		b.want("numbers of nodes are integers", b.put(instanceID, body), status)
	}
}
