package broker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
)

func (b *fixture) validate(id, body string) reply {
	b.Helper()

	return b.do(call{method: "POST", path: path(id) + "/validate", body: body})
}

func TestValidate(t *testing.T) {
	b := newFixture(t, offering(t, oneTrial))
	b.want("an instance that uses up the quota", b.put("taken", trialOf("ga-1")), 202)

	type wrong struct{ Field, Rule string }

	cases := map[string]struct {
		reason string
		id     string
		body   string
		want   []wrong
		left   any // the remaining quota, nil without a limit
	}{
		"Fine":       {"an order without parameters", "new", order(), nil, nil},
		"Quota":      {"the account already has a trial", "new", trialOf("ga-1"), []wrong{{"plan_id", "quota"}}, 0.0},
		"QuotaLeft":  {"another account has no trial", "new", trialOf("ga-2"), nil, 1.0},
		"Repeated":   {"a repeated order of an existing instance", "taken", trialOf("ga-1"), nil, 1.0},
		"Taken":      {"the ID belongs to another order", "taken", order(), []wrong{{"", "exists"}}, nil},
		"Parameters": {"each violation names its field", "new", order(with("parameters", map[string]any{"autoScalerMin": 1, "colour": "red"})), []wrong{{"autoScalerMin", "minimum"}, {"colour", "unknown"}}, nil},
		"UpdateOnly": {"the plan lists the parameter for updates", "new", order(with("parameters", with("upgradeTime", "2030-01-02T22:00:00Z"))), []wrong{{"upgradeTime", "updateOnly"}}, nil},
		"Rules":      {"violations of other rules", "new", order(with("parameters", map[string]any{"networking": map[string]any{"nodes": "10.242.0.0/16"}})), []wrong{{"networking.nodes", "overlap"}}, nil},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := b.want(test.reason, b.validate(test.id, test.body), 200)

			var found []wrong

			for _, one := range got.Body["errors"].([]any) {
				fields := one.(map[string]any)
				found = append(found, wrong{fields["field"].(string), fields["rule"].(string)})

				if fields["message"] == "" {
					t.Errorf("%s: the violation %v has no message", test.reason, fields)
				}
			}

			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Errorf("%s: -want +got\n%s\n%s", test.reason, diff, got.Raw)
			}

			if got.Body["valid"] != (len(test.want) == 0) {
				t.Errorf("%s: valid is %v", test.reason, got.Body["valid"])
			}

			var left any
			if quota, limited := got.Body["quota"].(map[string]any); limited {
				left = quota["left"]
			}

			if left != test.left {
				t.Errorf("%s: quota left %v, want %v", test.reason, left, test.left)
			}
		})
	}

	b.want("no instance was stored", b.get("new"), 404)

	if operations := b.carried("new"); len(operations) > 0 {
		t.Errorf("validation started an operation: %v", operations)
	}
}

func TestValidateReturnsResolvedOrder(t *testing.T) {
	b := newFixture(t)

	want := map[string]any{
		"name": "n", "provider": "aws", "region": "eu-central-1", "kubernetesVersion": "1.34", "machineType": "m6i.large", "volumeSizeGb": 80.0,
		"autoScalerMin": 3.0, "autoScalerMax": 5.0, "maxSurge": 3.0, "maxUnavailable": 0.0, "purpose": "development",
		"zones":          []any{"eu-central-1a", "eu-central-1b", "eu-central-1c"},
		"networking":     map[string]any{"nodes": "10.250.0.0/16", "pods": "10.96.0.0/13", "services": "10.104.0.0/13"},
		"administrators": []any{"anna"},
	}

	got := b.validate("new", order(with("context", map[string]any{"user_id": "anna"}), with("parameters", map[string]any{"name": "n", "autoScalerMax": 5})))
	if diff := cmp.Diff(want, got.Body["resolved"]); diff != "" {
		t.Errorf("resolved: -want +got\n%s\n%s", diff, got.Raw)
	}
}

func TestValidateOmitsRangesThatGardenerChooses(t *testing.T) {
	for open, want := range map[bool]map[string]any{
		true:  {"nodes": "10.250.0.0/16"},
		false: {"nodes": "10.250.0.0/16", "pods": "10.96.0.0/13", "services": "10.104.0.0/13"},
	} {
		b := newFixture(t, func(options *broker.Options) { options.RangesLeftOpen = func() bool { return open } })

		resolved, _ := b.validate("new", order()).Body["resolved"].(map[string]any)
		if diff := cmp.Diff(want, resolved["networking"]); diff != "" {
			t.Errorf("ranges chosen by Gardener (%t): -want +got\n%s", open, diff)
		}
	}
}

func TestValidateRejectsLikeCreation(t *testing.T) {
	b := newFixture(t)

	b.want("the body must be an object", b.validate("new", `[]`), 400)
	b.want("the plan must be in the catalog", b.validate("new", order(with("plan_id", "x"))), 400)
	b.want("POST is the only method", b.do(call{method: "PUT", path: path("new") + "/validate", body: order()}), 405)
	b.want("the osb role is required", b.do(call{method: "POST", path: path("new") + "/validate", body: order(), user: "nobody"}), 401)
}
