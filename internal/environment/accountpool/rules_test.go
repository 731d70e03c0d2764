package accountpool_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
)

func parse(t *testing.T, rules ...string) (accountpool.Rules, error) {
	t.Helper()

	return accountpool.ParseRules([]byte("rule:\n- " + strings.Join(rules, "\n- ") + "\n"))
}

func TestMostSpecificRuleApplies(t *testing.T) {
	rules, err := parse(t, "aws", "aws(PR=cf-eu11) -> EU", "aws(PR=cf-eu11, HR=eu-central-1)->EU,PR,HR", "aws(HR=us-east-1) -> HR",
		"aws(PR=cf-eu11,HR=us-east-1) -> PR", "trial(PR=*,HR=*) -> S", " gcp ( PR = cf-sa30 ) -> PR ")
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		reason, plan, platformRegion, region, want string
	}{
		{"only the general rule matches", "aws", "cf-us10", "eu-west-1", "hyperscalerType aws"},
		{"a platform region is more specific than none", "aws", "cf-eu11", "eu-west-1", "hyperscalerType aws, euAccess"},
		{"a region is more specific than none", "aws", "cf-us10", "us-east-1", "hyperscalerType aws_us-east-1"},
		{"two attributes are more specific than one", "aws", "cf-eu11", "eu-central-1", "hyperscalerType aws_cf-eu11_eu-central-1, euAccess"},
		{"a rule for both resolves the ambiguity", "aws", "cf-eu11", "us-east-1", "hyperscalerType aws_cf-eu11"},
		{"a star matches every value", "trial", "cf-eu10", "europe", "shared, hyperscalerType aws"},
		{"white space does not matter", "gcp", "cf-sa30", "me-central2", "hyperscalerType aws_cf-sa30"},
		{"no rule matches", "gcp", "cf-eu30", "europe-west3", ""},
		{"the plan has no rule", "azure", "cf-eu20", "westeurope", ""},
	} {
		rule, found := rules.Find(c.plan, c.platformRegion, c.region)

		got := ""
		if found {
			got = rule.Selector("aws", c.platformRegion, c.region).String()
		}

		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
		}
	}
}

func TestInvalidRules(t *testing.T) {
	for _, c := range []struct{ reason, rules, want string }{
		{"an empty file would fail every order", "", "the list `rule` is empty"},
		{"other keys are misspelled", "rules: [aws]", "unknown field"},
		{"the file is YAML", "rule: [", "parsing the rules"},
		{"a plan is required", "rule: ['(PR=a)']", "malformed"},
		{"the arrow needs attributes", "rule: ['aws ->']", "after the arrow"},
		{"an attribute is misspelled", "rule: ['aws(RP=a)']", `unknown attribute "RP"`},
		{"an output is misspelled", "rule: ['aws -> E']", `unknown attribute "E"`},
		{"an attribute needs a value", "rule: ['aws(PR=)']", "is not a region"},
		{"labels have no spaces", "rule: ['aws(PR=a b)']", "is not a region"},
		{"long regions would not fit into a label", "rule: ['aws(PR=" + strings.Repeat("a", 26) + ")']", "is not a region"},
		{"an attribute has one value", "rule: ['aws(PR=a,PR=b)']", "occurs twice"},
		{"an output is given once", "rule: ['aws -> S,S']", "occurs twice"},
		{"the text after the parentheses is lost", "rule: ['aws(PR=a) x']", "malformed"},
		{"the second rule never applies", "rule: [aws, 'aws -> S']", `rule 2, "aws -> S", is unreachable: "aws" matches the same instances`},
		{"a star is the same as no attribute", "rule: [aws, 'aws(PR=*) -> S']", "unreachable"},
		{
			"neither rule is more specific", "rule: ['aws(PR=a)', 'aws(HR=b) -> S']",
			`ambiguous: both "aws(PR=a)" and "aws(HR=b) -> S" match aws(PR=a,HR=b): add a rule for this combination`,
		},
		{"the number of rules is bounded", "rule: [" + strings.Repeat("a,", 1001) + "]", "the file has 1001 rules, but at most 1000 are allowed"},
		{"the size is bounded", strings.Repeat("#", 1<<20+1), "larger than"},
	} {
		_, err := accountpool.ParseRules([]byte(c.rules))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
		}
	}
}

func TestRulesMustFitTheCatalog(t *testing.T) {
	plans := []accountpool.Plan{
		{Name: "aws", Regions: []string{"eu-central-1", "us-east-1"}, Offered: true},
		{Name: "azure", Regions: []string{"westeurope"}},
		{Name: "own_cluster", Offered: true},
	}

	for _, c := range []struct {
		reason string
		rules  []string
		want   string
	}{
		{"plans that are not offered need no rule", []string{"aws"}, ""},
		{"offered plans need a rule", []string{"azure"}, "plan aws is offered but has no rule"},
		{"the plan is misspelled", []string{"aws", "gpc"}, `rule "gpc" is unreachable: the catalog has no plan gpc`},
		{"tenants bring these clusters", []string{"aws", "own_cluster"}, "need no account"},
		{"the region is misspelled", []string{"aws", "aws(HR=eu-center-1)"}, "has no region eu-center-1"},
		{
			"more specific rules hide it",
			[]string{"aws", "aws(HR=eu-central-1)", "aws(HR=us-east-1)"},
			`rule "aws" is unreachable: other rules match all regions`,
		},
		{
			"more specific rules hide it in a platform region",
			[]string{"aws", "aws(PR=a)", "aws(PR=a,HR=eu-central-1)", "aws(PR=a,HR=us-east-1)"},
			`rule "aws(PR=a)" is unreachable`,
		},
		{"one region is left", []string{"aws", "aws(PR=a)", "aws(PR=a,HR=us-east-1)"}, ""},
	} {
		rules, err := parse(t, c.rules...)
		if err != nil {
			t.Fatal(err)
		}

		err = rules.Check(plans)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
		}
	}
}
