package broker_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/internal/environment"
)

func TestProvisionIsAccepted(t *testing.T) {
	onEach(t, func(b *fixture) {
		got := b.want("creation is asynchronous", b.put(instanceID, order()), 202)

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
		if !regexp.MustCompile(`^c-[0-9a-hjkmnp-tv-z]{7}$`).MatchString(instance.ShootName) {
			b.Errorf("the name of the Shoot is %q", instance.ShootName)
		}

		records := b.carried(instanceID)
		if len(records) != 1 || records[0].ID != got.text("operation") || records[0].Kind != environment.KindProvision {
			b.Fatalf("operations: %+v", records)
		}

		var data environment.Data
		if err := json.Unmarshal(b.payload(records[0].ID), &data); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(environment.Data{Provisioning: records[0].ID}, data); diff != "" {
			b.Errorf("data of the operation: -want +got\n%s", diff)
		}

		if b.wakes.Load() != 1 {
			b.Errorf("the engine was woken %d times, want once", b.wakes.Load())
		}
	})
}

func TestPlansRequireNoParameters(t *testing.T) {
	for name, plan := range map[string]string{"aws": planAWS, "azure": planAzure, "gcp": planGCP, "trial": planTrial} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			body := `{"service_id":"` + serviceID + `","plan_id":"` + plan + `","organization_guid":"o","space_guid":"s","parameters":null}`

			b.want("an order without parameters", b.put(instanceID, body), 202)

			instance := b.stored(instanceID)
			got := []string{instance.GlobalAccountID, instance.SubAccountID, instance.Name, instance.PlatformRegion, instance.PlanName}

			if diff := cmp.Diff([]string{"o", "s", "0f5b2c7e", "cf-eu10", name}, got); diff != "" {
				b.Errorf("tenant, subaccount, name, platform region, plan: -want +got\n%s", diff)
			}
		})
	}
}

func TestEachIDIsAResource(t *testing.T) {
	b := newFixture(t)

	first := b.want("an instance", b.put("one", order()), 202)
	second := b.want("another instance", b.put("another", order()), 202)

	if first.text("operation") == second.text("operation") || first.text("dashboard_url") == second.text("dashboard_url") {
		b.Errorf("two instances have the same operation or address: %s, %s", first.Raw, second.Raw)
	}

	if b.stored("one").ShootName == b.stored("another").ShootName {
		b.Error("two instances have the same Shoot name")
	}
}

// TestRepeatedOrderOfALostInstance checks the name of the Shoot when an order is repeated after the database has lost the instance.
func TestRepeatedOrderOfALostInstance(t *testing.T) {
	name := func(order string) string {
		b := newFixture(t)
		b.want("an order", b.put("lost", order), 202)

		return b.stored("lost").ShootName
	}

	first := name(order())
	if repeated := name(order()); repeated != first {
		t.Errorf("the repeated order has the Shoot %s, want the existing one, %s", repeated, first)
	}

	other := order(with("context", map[string]any{"globalaccount_id": "other", "subaccount_id": "other"}))
	if name(other) == first {
		t.Error("an order of another tenant has the Shoot of the lost instance")
	}
}

func TestTenantOfTheInstance(t *testing.T) {
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
		"Account":         {reason: "BTP sends the account in the context", context: map[string]any{"globalaccount_id": "ga", "subaccount_id": "sa"}, change: without, status: 202, want: tenancy{"ga", "sa"}},
		"AccountOnly":     {reason: "the account alone suffices", context: map[string]any{"globalaccount_id": "ga"}, change: without, status: 202, want: tenancy{"ga", ""}},
		"AccountFirst":    {reason: "the context overrides the deprecated fields", context: map[string]any{"globalaccount_id": "ga", "subaccount_id": "sa"}, status: 202, want: tenancy{"ga", "sa"}},
		"Mixed":           {reason: "account and subaccount fall back separately", context: map[string]any{"globalaccount_id": "ga"}, status: 202, want: tenancy{"ga", "space-1"}},
		"Organization":    {reason: "Cloud Foundry sends the GUIDs", context: nil, status: 202, want: tenancy{"org-1", "space-1"}},
		"Cluster":         {reason: "Kubernetes sends cluster and namespace", context: map[string]any{"platform": "kubernetes", "clusterid": "c", "namespace": "n"}, change: without, status: 202, want: tenancy{"c", "n"}},
		"GUIDsAndCluster": {reason: "the organization overrides the cluster", context: map[string]any{"clusterid": "c", "namespace": "n"}, status: 202, want: tenancy{"org-1", "space-1"}},
		"Nobody":          {reason: "a tenant is required", context: map[string]any{"platform": "x"}, change: without, status: 400},
		"Strict":          {reason: "strict mode requires the GUIDs", strict: true, context: map[string]any{"globalaccount_id": "ga"}, change: without, status: 400},
		"StrictGiven":     {reason: "strict mode accepts both", strict: true, context: map[string]any{"globalaccount_id": "ga"}, status: 202, want: tenancy{"ga", "space-1"}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, func(options *broker.Options) { options.Strict = test.strict })

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

func TestRegionOfThePath(t *testing.T) {
	for form, want := range map[string]string{
		"/v2": "cf-eu10", "/oauth/v2": "cf-eu10", "/oauth/cf-us10/v2": "cf-us10", "/oauth/cf%2Dap21/v2": "cf-ap21",
	} {
		b := newFixture(t)
		b.want("each path form accepts orders", b.do(call{
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
		"Context":    {reason: "BTP sends the user in the context", context: map[string]any{"user_id": "anna@example.com"}, header: "cloudfoundry eyJ1c2VyX2lkIjoiYmVydCJ9", want: []string{"anna@example.com"}},
		"Case":       {reason: "user IDs are in lower case, as in tokens", context: map[string]any{"user_id": "Anna@Example.com"}, want: []string{"anna@example.com"}},
		"Originator": {reason: "other platforms send the user in the header", header: "cloudfoundry eyJ1c2VyX2lkIjoiYmVydCJ9", want: []string{"bert"}},
		"Nobody":     {reason: "without a user", want: []string{}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
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
