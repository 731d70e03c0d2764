package fleet

import (
	"fmt"
	"regexp"
)

// Policy determines the maintenance windows of instances. Its JSON form is compatible with the maintenance policy of Kyma
// Environment Broker. The zero value uses the windows of plans and Shoots.
type Policy struct {
	// Rules are tried in order; the first one that matches applies.
	Rules []PolicyRule `json:"rules,omitempty"`
	// Default applies to an instance if no rule matches it and its plan has no window.
	Default WindowTimes `json:"default,omitzero"`
}

// PolicyRule sets the window of the instances that Match selects. A rule with days but no times only sets the days; the times
// come from the window of the plan or of the Shoot.
type PolicyRule struct {
	WindowTimes

	Match PolicyMatch `json:"match"`
}

// PolicyMatch matches an instance if all fields that are not empty match. Each field is a regular expression in RE2 syntax, and
// matches if it matches any part of the instance's value.
type PolicyMatch struct {
	GlobalAccountID string `json:"globalAccountID,omitempty"`
	Plan            string `json:"plan,omitempty"`
	// Region is the region of the cloud provider.
	Region string `json:"region,omitempty"`
}

// Windows finds the maintenance windows of instances. It is safe for concurrent use.
type Windows struct {
	rules []compiledRule
	other WindowTimes
}

type compiledRule struct {
	account, plan, region *regexp.Regexp

	times WindowTimes
}

// Compile checks the policy and returns a Windows that applies it. The error is of type ValidationError, and starts with the path
// of the invalid field.
func (p Policy) Compile() (Windows, error) {
	windows := Windows{other: p.Default}

	if err := p.Default.Validate(); err != nil {
		return windows, invalid("default: %s", err)
	}

	for i, rule := range p.Rules {
		compiled := compiledRule{times: rule.WindowTimes}

		if err := rule.Validate(); err != nil {
			return windows, invalid("rules[%d]: %s", i, err)
		}

		for _, field := range []struct {
			name, pattern string
			into          **regexp.Regexp
		}{
			{"globalAccountID", rule.Match.GlobalAccountID, &compiled.account},
			{"plan", rule.Match.Plan, &compiled.plan},
			{"region", rule.Match.Region, &compiled.region},
		} {
			var err error
			if *field.into, err = regexp.Compile(field.pattern); err != nil {
				return windows, invalid("rules[%d].match.%s: %s", i, field.name, err)
			}
		}

		windows.rules = append(windows.rules, compiled)
	}

	return windows, nil
}

// Validate returns an error if the times are invalid. Days without times are valid, because Windows.Of can take the times from
// another source.
func (t WindowTimes) Validate() error {
	if t.Begin != "" || t.End != "" {
		_, err := t.Window()

		return err
	}

	if t.TimeZone != "" {
		return invalid("timeZone needs timeBegin and timeEnd")
	}

	_, err := t.days()

	return err
}

// Of returns the window of an instance. plan and shoot are the windows of its plan and of its Shoot, which can be zero. Of takes
// the days and the times separately, each from the first source that has them: the first rule that matches, the plan, the default
// of the policy (only if no rule matches), the Shoot. The window is zero if no times are known.
func (w Windows) Of(candidate Candidate, plan, shoot WindowTimes) (Window, error) {
	sources := []WindowTimes{plan, w.other, shoot}

	for _, rule := range w.rules {
		if rule.account.MatchString(candidate.GlobalAccount) && rule.plan.MatchString(candidate.PlanName) && rule.region.MatchString(candidate.Region) {
			sources = append([]WindowTimes{rule.times}, plan, shoot)

			break
		}
	}

	var times WindowTimes

	for _, source := range sources {
		if len(times.Days) == 0 {
			times.Days = source.Days
		}

		if times.Begin == "" {
			times.Begin, times.End, times.TimeZone = source.Begin, source.End, source.TimeZone
		}
	}

	if times.Begin == "" {
		return Window{}, nil
	}

	window, err := times.Window()
	if err != nil {
		return Window{}, fmt.Errorf("the maintenance window of instance %s: %w", candidate.InstanceID, err)
	}

	return window, nil
}
