package accountpool_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
)

// FuzzRules checks that each rule of an accepted file can be read again alone, and that the types of accounts are valid labels.
func FuzzRules(f *testing.F) {
	for _, seed := range []string{
		"rule: [aws]", "rule:\n- aws(PR=cf-eu11) -> EU\n- trial -> S", "rule: ['gcp(PR=cf-sa30,HR=*) -> PR,HR']", "rule: ['a(,)']", "rule: [\"a\\n->S\"]",
	} {
		f.Add([]byte(seed), "cf-eu11", "eu-central-1")
	}

	f.Fuzz(func(t *testing.T, content []byte, platformRegion, region string) {
		rules, err := accountpool.ParseRules(content)
		if err != nil {
			return
		}

		for _, plan := range []string{"aws", "trial", "gcp", "a"} {
			rule, found := rules.Find(plan, platformRegion, region)
			if !found {
				continue
			}

			alone, err := yaml.Marshal(map[string][]string{"rule": {rule.String()}})
			if err != nil {
				t.Fatal(err)
			}

			if again, err := accountpool.ParseRules(alone); err != nil {
				t.Errorf("the rule %q is not accepted alone: %v", rule, err)
			} else if same, _ := again.Find(plan, platformRegion, region); same != rule {
				t.Errorf("the rule %q changes when it is read again: %+v", rule, same)
			}

			if rule.PlatformRegion == "" || rule.Region == "" {
				continue
			}

			label := rule.Selector("openstack", rule.PlatformRegion, rule.Region).Type
			if problems := validation.IsValidLabelValue(label); len(problems) > 0 {
				t.Errorf("the rule %q leads to the type %q, which is not a valid label: %v", rule, label, problems)
			}
		}
	})
}
