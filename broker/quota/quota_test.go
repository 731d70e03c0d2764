package quota_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// plans knows one plan.
func plans(nameOrID string) (string, bool) {
	return "id-of-aws", nameOrID == "aws" || nameOrID == "id-of-aws"
}

func TestParse(t *testing.T) {
	quotas, err := quota.Parse([]byte(`quotas:
- name: aws-in-frankfurt
  per: [subaccount, plan]
  plans: [aws]
  regions: [eu-central-1]
  limit: 5
  limits: {team: 7, big: -1}
- name: all
  limit: 0
`), plans)
	if err != nil {
		t.Fatal(err)
	}

	frankfurt, all := &quotas[0], &quotas[1]
	instance := environment.Instance{GlobalAccountID: "ga", SubAccountID: "team", PlanID: "id-of-aws", Region: "eu-central-1"}

	for _, test := range []struct {
		reason    string
		got, want any
	}{
		{"the plan has its ID", frankfurt.Plans, []string{"id-of-aws"}},
		{"plan and region", frankfurt.Covers("id-of-aws", "eu-central-1"), true},
		{"another region", frankfurt.Covers("id-of-aws", "us-east-1"), false},
		{"another plan", frankfurt.Covers("id-of-gcp", "eu-central-1"), false},
		{"a quota of all", all.Covers("id-of-gcp", ""), true},
		{"a group has only the dimensions of its quota", frankfurt.GroupOf(instance), quota.Group{SubAccountID: "team", PlanID: "id-of-aws"}},
		{"a quota of all has one group", all.GroupOf(instance), quota.Group{}},
		{"a limit of its own", frankfurt.LimitOf(quota.Group{SubAccountID: "team"}), 7},
		{"limits are by subaccount if the quota is", frankfurt.LimitOf(quota.Group{GlobalAccountID: "team", SubAccountID: "x"}), 5},
		{"no limit", frankfurt.LimitOf(quota.Group{SubAccountID: "big"}), quota.Unlimited},
		{"0 allows none", all.LimitOf(quota.Group{}), 0},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s: -want +got\n%s", test.reason, diff)
		}
	}
}

func TestParseRejects(t *testing.T) {
	many := "quotas:\n" + strings.Repeat("- {name: a, limit: 1}\n", 101)

	for name, test := range map[string]struct{ file, want string }{
		"no YAML":          {"quotas: [", "decoding the quotas"},
		"unknown field":    {"quotas: [{name: a, limit: 1, region: x}]", "region"},
		"name":             {"quotas: [{name: A b, limit: 1}]", `the name "A b"`},
		"same name":        {"quotas: [{name: a, limit: 1}, {name: a, limit: 2}]", "another quota has the same name"},
		"no limit":         {"quotas: [{name: a}]", "quota a: limit is missing"},
		"negative limit":   {"quotas: [{name: a, limit: -1}]", "limit must not be negative"},
		"dimension":        {"quotas: [{name: a, limit: 1, per: [tenant]}]", `"tenant" is not one of account, subaccount, plan, region`},
		"dimension twice":  {"quotas: [{name: a, limit: 1, per: [plan, plan]}]", "plan is listed twice"},
		"plan":             {"quotas: [{name: a, limit: 1, plans: [awz]}]", `the catalog has no plan "awz"`},
		"empty region":     {"quotas: [{name: a, limit: 1, regions: ['']}]", "a region is empty"},
		"whose limits":     {"quotas: [{name: a, limit: 1, limits: {x: 1}}]", "per has neither account nor subaccount"},
		"limit of tenant":  {"quotas: [{name: a, limit: 1, per: [account], limits: {x: -2}}]", "the limit for x must not be negative, except -1"},
		"too many":         {many, "at most 100 are supported"},
		"too many tenants": {"quotas: [{name: a, limit: 1, per: [account], limits: {" + tenants(1001) + "}}]", "at most 1000 are supported"},
	} {
		if _, err := quota.Parse([]byte(test.file), plans); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, want %q", name, err, test.want)
		}
	}
}

// tenants returns limits of many tenants.
func tenants(number int) string {
	var limits strings.Builder
	for n := range number {
		fmt.Fprintf(&limits, "t%d: 1, ", n)
	}

	return limits.String()
}

func TestExceededError(t *testing.T) {
	perAccount := quota.Quota{Name: "some", Per: []string{quota.PerAccount}}

	for want, exceeded := range map[string]quota.ExceededError{
		"this account has 1 instance, and the limit is 1.":  {Quota: perAccount, Used: 1, Limit: 1},
		"this account has 0 instances, and the limit is 0.": {Quota: perAccount, Used: 0, Limit: 0},
		"there is 1 instance, and the limit is 1.":          {Quota: quota.Quota{Name: "some"}, Used: 1, Limit: 1},
		"there are 3 instances, and the limit is 2.":        {Quota: quota.Quota{Name: "some"}, Used: 3, Limit: 2},
	} {
		if got := exceeded.Error(); !strings.HasPrefix(got, "The quota some is used up: "+want) {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("quotas: [{name: a, per: [account, plan], plans: [aws], regions: [x], limit: 1, limits: {x: -1}}]")
	f.Add("quotas: [{name: a, limit: 1e9}]")

	f.Fuzz(func(t *testing.T, file string) {
		quotas, err := quota.Parse([]byte(file), plans)
		if err != nil {
			return
		}

		for _, each := range quotas {
			if limit := each.LimitOf(each.GroupOf(environment.Instance{GlobalAccountID: "x", SubAccountID: "y"})); limit < quota.Unlimited || each.Name == "" {
				t.Errorf("a quota with limit %d is accepted: %q", limit, file)
			}
		}
	})
}
