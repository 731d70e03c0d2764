package accountpool

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Limits for the rules file. They keep Find fast, because it goes through all rules of the instance's plan.
const (
	maxRulesBytes = 1 << 20
	maxRules      = 1000
)

// Rule specifies which accounts the instances of a plan may use. An empty PlatformRegion or Region matches every value.
type Rule struct {
	Plan string
	// PlatformRegion is the PR attribute: the region of the platform. Region is the HR attribute: the region of the cloud provider.
	PlatformRegion, Region string
	// Shared selects accounts that several tenants share. EUAccess selects accounts that only operators in the European Union may
	// access.
	Shared, EUAccess bool
	// ByPlatformRegion and ByRegion select accounts that are reserved for the platform region or for the region of the provider.
	ByPlatformRegion, ByRegion bool

	// text is the rule as written in the file, for errors.
	text string
}

// String returns the rule as written in the file.
func (r Rule) String() string { return r.text }

// matches reports whether the rule applies to instances of its plan in the given platform region and provider region.
func (r Rule) matches(platformRegion, region string) bool {
	return (r.PlatformRegion == "" || r.PlatformRegion == platformRegion) && (r.Region == "" || r.Region == region)
}

// weight returns how many of the two regions the rule restricts. If several rules match, the one with the highest weight applies.
func (r Rule) weight() int {
	weight := 0

	for _, attribute := range []string{r.PlatformRegion, r.Region} {
		if attribute != "" {
			weight++
		}
	}

	return weight
}

// Rules contains the rules of a rules file, grouped by plan. It is immutable.
type Rules struct {
	byPlan map[string][]Rule
}

// Find returns the rule for an instance: the matching rule that restricts the most regions. ParseRules ensures that there is at
// most one. Find returns false if no rule matches.
func (r Rules) Find(plan, platformRegion, region string) (Rule, bool) {
	var (
		found   Rule
		matched bool
	)

	for _, rule := range r.byPlan[plan] {
		if rule.matches(platformRegion, region) && (!matched || rule.weight() > found.weight()) {
			found, matched = rule, true
		}
	}

	return found, matched
}

type rulesFile struct {
	Rule []string `json:"rule"`
}

// ParseRules reads a rules file: YAML with the list `rule`, whose items have the form
//
//	plan(PR=cf-eu11,HR=eu-central-1) -> S,EU,PR,HR
//
// The parentheses, each attribute in them, and the arrow with its attributes are optional. `*` matches every value, as if the
// attribute were omitted. The error lists all malformed, duplicate and ambiguous rules.
func ParseRules(content []byte) (Rules, error) {
	if len(content) > maxRulesBytes {
		return Rules{}, fmt.Errorf("the file is larger than %d bytes", maxRulesBytes)
	}

	var file rulesFile
	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		return Rules{}, fmt.Errorf("parsing the rules: %w", err)
	}

	switch {
	case len(file.Rule) == 0:
		return Rules{}, errors.New("the list `rule` is empty or missing: write at least one rule, such as `- aws`")
	case len(file.Rule) > maxRules:
		return Rules{}, fmt.Errorf("the file has %d rules, but at most %d are allowed", len(file.Rule), maxRules)
	}

	var errs []error

	rules := Rules{byPlan: map[string][]Rule{}}

	for number, text := range file.Rule {
		rule, err := parseRule(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("rule %d, %q: %w", number+1, text, err))

			continue
		}

		for _, earlier := range rules.byPlan[rule.Plan] {
			if earlier.PlatformRegion == rule.PlatformRegion && earlier.Region == rule.Region {
				errs = append(errs, fmt.Errorf("rule %d, %q, is unreachable: %q matches the same instances; remove one of the two rules", number+1, text, earlier.text))
			}
		}

		rules.byPlan[rule.Plan] = append(rules.byPlan[rule.Plan], rule)
	}

	return rules, errors.Join(append(errs, rules.ambiguous()...)...)
}

// form matches a rule. Its groups are the plan, the attributes in parentheses, and the attributes after the arrow.
var form = regexp.MustCompile(`^\s*([a-z0-9][a-z0-9_-]*)\s*(?:\(([^()]*)\))?\s*(?:->(.*))?$`)

// value matches a region. It allows the characters of a Kubernetes label value, because regions become parts of labels.
var value = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

func parseRule(text string) (Rule, error) {
	parts := form.FindStringSubmatch(text)
	if parts == nil {
		return Rule{}, errors.New("malformed; a rule must have the form plan(PR=platform-region,HR=region) -> S,EU,PR,HR")
	}

	rule := Rule{Plan: parts[1], text: text}

	if err := rule.parseInputs(parts[2]); err != nil {
		return Rule{}, err
	}

	if !strings.Contains(text, "->") {
		return rule, nil
	}

	return rule, rule.parseOutputs(parts[3])
}

// parseInputs parses the attributes in parentheses.
func (r *Rule) parseInputs(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}

	seen := map[string]bool{}

	for attribute := range strings.SplitSeq(text, ",") {
		name, wanted, _ := strings.Cut(attribute, "=")
		name, wanted = strings.TrimSpace(name), strings.TrimSpace(wanted)

		if seen[name] {
			return fmt.Errorf("attribute %s occurs twice", name)
		}

		seen[name] = true

		if wanted != "*" && (!value.MatchString(wanted) || len(wanted) > maxRegion) {
			return fmt.Errorf("the value %q of attribute %s is not a region", wanted, name)
		}

		if wanted == "*" {
			wanted = ""
		}

		switch name {
		case "PR":
			r.PlatformRegion = wanted
		case "HR":
			r.Region = wanted
		default:
			return fmt.Errorf("unknown attribute %q in parentheses; use PR or HR", name)
		}
	}

	return nil
}

// maxRegion is the maximum length of a region's name. An account type can contain two regions and must fit into a label value,
// which can have at most 63 characters.
const maxRegion = 25

// parseOutputs parses the attributes after the arrow.
func (r *Rule) parseOutputs(text string) error {
	for attribute := range strings.SplitSeq(text, ",") {
		name := strings.TrimSpace(attribute)
		target := map[string]*bool{"S": &r.Shared, "EU": &r.EUAccess, "PR": &r.ByPlatformRegion, "HR": &r.ByRegion}[name]

		switch {
		case target == nil:
			return fmt.Errorf("unknown attribute %q after the arrow; use S, EU, PR or HR", name)
		case *target:
			return fmt.Errorf("attribute %s occurs twice after the arrow", name)
		}

		*target = true
	}

	return nil
}

// ambiguous returns an error for each pair of rules that can apply to the same instance although neither is more specific: one
// names the platform region, the other names the provider region, and no third rule names both regions.
func (r Rules) ambiguous() []error {
	var errs []error

	for _, rules := range r.byPlan {
		for _, one := range rules {
			for _, other := range rules {
				if one.PlatformRegion == "" || one.Region != "" || other.Region == "" || other.PlatformRegion != "" {
					continue
				}

				if best, _ := r.Find(one.Plan, one.PlatformRegion, other.Region); best.weight() < 2 {
					errs = append(errs, fmt.Errorf("ambiguous: both %q and %q match %s(PR=%s,HR=%s): add a rule for this combination",
						one.text, other.text, one.Plan, one.PlatformRegion, other.Region))
				}
			}
		}
	}

	return errs
}

// Plan contains the fields of a catalog plan that rules depend on.
type Plan struct {
	Name string
	// Regions are the provider regions in which the plan creates clusters. It is empty for plans whose clusters the tenants
	// provide.
	Regions []string
	// Offered reports whether new instances can be ordered.
	Offered bool
}

// Check compares the rules with the plans of the catalog. It rejects rules that no instance can reach, and offered plans without
// a rule.
func (r Rules) Check(plans []Plan) error {
	var errs []error

	known := map[string]Plan{}
	for _, plan := range plans {
		known[plan.Name] = plan

		if plan.Offered && len(plan.Regions) > 0 && len(r.byPlan[plan.Name]) == 0 {
			errs = append(errs, fmt.Errorf("plan %s is offered but has no rule: add one, or remove the plan from APP_ENABLE_PLANS", plan.Name))
		}
	}

	for name, rules := range r.byPlan {
		plan, exists := known[name]

		for _, rule := range rules {
			if reason := rule.unreachable(plan, exists, rules); reason != "" {
				errs = append(errs, fmt.Errorf("rule %q is unreachable: %s", rule.text, reason))
			}
		}
	}

	return errors.Join(errs...)
}

// unreachable returns the reason why the rule cannot apply to any instance, or an empty string if it can. exists reports whether
// the rule's plan exists, and others contains all rules of this plan.
func (r Rule) unreachable(plan Plan, exists bool, others []Rule) string {
	switch {
	case !exists:
		return "the catalog has no plan " + r.Plan
	case len(plan.Regions) == 0:
		return "the clusters of plan " + r.Plan + " need no account"
	case r.Region != "":
		if slices.Contains(plan.Regions, r.Region) {
			return ""
		}

		return "plan " + r.Plan + " has no region " + r.Region
	}

	for _, region := range plan.Regions {
		hidden := false

		for _, other := range others {
			hidden = hidden || other.Region == region && other.PlatformRegion == r.PlatformRegion
		}

		if !hidden {
			return ""
		}
	}

	return "other rules match all regions of plan " + r.Plan
}
