package fleet

import (
	"fmt"
	"regexp"
	"slices"
)

const (
	// targetAll is the only value of Target.Target.
	targetAll = "all"
	// maxPattern and maxValue are the maximum lengths of regular expressions and of other fields. Matching takes linear time, whatever
	// the expression.
	maxPattern = 256
	maxValue   = 256
)

// Targets selects instances: those that an entry of Include matches and no entry of Exclude.
type Targets struct {
	Include []Target `json:"include"`
	Exclude []Target `json:"exclude,omitempty"`
}

// Target matches instances by all its fields that are not empty. If RuntimeID is set, the other fields are ignored.
type Target struct {
	// Target is "all" or empty. "all" matches all instances, and needs no other field.
	Target string `json:"target,omitempty"`
	// GlobalAccount, SubAccount and Region are regular expressions in the syntax of RE2. They match a part of the value, unless they
	// have the anchors ^ and $. Region is the region of the cloud provider.
	GlobalAccount string `json:"globalAccount,omitempty"`
	SubAccount    string `json:"subAccount,omitempty"`
	Region        string `json:"region,omitempty"`
	// The other fields are compared as a whole. Shoot is the name of the Shoot.
	RuntimeID  string `json:"runtimeID,omitempty"`
	PlanName   string `json:"planName,omitempty"`
	Shoot      string `json:"shoot,omitempty"`
	InstanceID string `json:"instanceID,omitempty"`
}

// Candidate has the fields of an instance that targets match.
type Candidate struct {
	GlobalAccount, SubAccount, Region, RuntimeID, PlanName, Shoot, InstanceID string
}

// patterns returns the regular expressions of the target by the names of their fields.
func (t Target) patterns() map[string]string {
	return map[string]string{"globalAccount": t.GlobalAccount, "subAccount": t.SubAccount, "region": t.Region}
}

// problems returns the mistakes in the target, sorted.
func (t Target) problems() []string {
	var problems []string

	switch {
	case t == Target{}:
		return []string{`it is empty; use {"target": "all"} for all instances`}
	case t.Target != "" && t.Target != targetAll:
		problems = append(problems, fmt.Sprintf("target must be %q", targetAll))
	case t.Target == targetAll && t != Target{Target: targetAll}:
		problems = append(problems, fmt.Sprintf("target %q needs no other field", targetAll))
	}

	for name, pattern := range t.patterns() {
		if len(pattern) > maxPattern {
			problems = append(problems, fmt.Sprintf("%s has %d bytes, at most %d are allowed", name, len(pattern), maxPattern))
		} else if _, err := regexp.Compile(pattern); err != nil {
			problems = append(problems, name+" is not a regular expression in the syntax of RE2")
		}
	}

	for _, value := range []string{t.RuntimeID, t.PlanName, t.Shoot, t.InstanceID} {
		if len(value) > maxValue {
			problems = append(problems, fmt.Sprintf("a field has %d bytes, at most %d are allowed", len(value), maxValue))
		}
	}

	slices.Sort(problems)

	return problems
}

// Selector selects instances by Targets.
type Selector struct{ include, exclude []matcher }

// matcher is a target with its compiled regular expressions, which are nil if they are empty.
type matcher struct {
	Target

	globalAccount, subAccount, region *regexp.Regexp
}

// NewSelector compiles the targets, which must be valid: see Parameters.Complete.
func NewSelector(targets Targets) Selector {
	return Selector{include: matchers(targets.Include), exclude: matchers(targets.Exclude)}
}

func matchers(targets []Target) []matcher {
	compile := func(pattern string) *regexp.Regexp {
		if pattern == "" {
			return nil
		}

		return regexp.MustCompile(pattern)
	}

	compiled := make([]matcher, 0, len(targets))
	for _, target := range targets {
		compiled = append(compiled, matcher{target, compile(target.GlobalAccount), compile(target.SubAccount), compile(target.Region)})
	}

	return compiled
}

// Selects reports whether the targets select the instance.
func (s Selector) Selects(candidate Candidate) bool {
	matches := func(matcher matcher) bool { return matcher.matches(candidate) }

	return slices.ContainsFunc(s.include, matches) && !slices.ContainsFunc(s.exclude, matches)
}

func (m matcher) matches(candidate Candidate) bool {
	if m.Target.Target == targetAll {
		return true
	}

	if m.RuntimeID != "" {
		return m.RuntimeID == candidate.RuntimeID
	}

	return found(m.globalAccount, candidate.GlobalAccount) && found(m.subAccount, candidate.SubAccount) && found(m.region, candidate.Region) &&
		equal(m.PlanName, candidate.PlanName) && equal(m.Shoot, candidate.Shoot) && equal(m.InstanceID, candidate.InstanceID)
}

func found(pattern *regexp.Regexp, value string) bool {
	return pattern == nil || pattern.MatchString(value)
}

func equal(wanted, value string) bool { return wanted == "" || wanted == value }
