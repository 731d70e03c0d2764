package fleet

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/labels"
)

const (
	// targetAll is the only value of Target.Target.
	targetAll = "all"
	// maxPattern and maxValue are the maximum lengths of regular expressions and of other fields. RE2 matches any expression in
	// linear time, so this limit is enough to bound the work.
	maxPattern = 256
	maxValue   = 256
	// maxPercentage is the percentage that selects all instances.
	maxPercentage = 100
)

// Targets selects the instances that match an entry of Include and no entry of Exclude.
type Targets struct {
	Include []Target `json:"include"`
	Exclude []Target `json:"exclude,omitempty"`
}

// Target matches an instance if all fields that are not empty match. If RuntimeID is set, GlobalAccount, SubAccount,
// Region, PlanName, Shoot and InstanceID are ignored, and the remaining fields must be empty.
type Target struct {
	// Target is "all" or empty. "all" matches all instances and can be combined only with Percentage.
	Target string `json:"target,omitempty"`
	// GlobalAccount, SubAccount and Region are regular expressions in RE2 syntax. They match a part of the value, unless they have
	// the anchors ^ and $. Region is the region of the cloud provider.
	GlobalAccount string `json:"globalAccount,omitempty"`
	SubAccount    string `json:"subAccount,omitempty"`
	Region        string `json:"region,omitempty"`
	// RuntimeID, PlanName, Shoot and InstanceID must equal the whole value. Shoot is the name of the Shoot.
	RuntimeID  string `json:"runtimeID,omitempty"`
	PlanName   string `json:"planName,omitempty"`
	Shoot      string `json:"shoot,omitempty"`
	InstanceID string `json:"instanceID,omitempty"`
	// State is the state of the runtime, one of RuntimeStates.
	State string `json:"state,omitempty"`
	// KubernetesVersion and KymaVersion match the versions that the broker ordered last. A prefix suffices: 1.34 matches 1.34.2.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	KymaVersion       string `json:"kymaVersion,omitempty"`
	// Labels is a label selector in the syntax of labels.Parse.
	Labels string `json:"labels,omitempty"`
	// Percentage, from 1 to 100, selects a share of the instances that the other fields match. 0 means all. Whether an instance
	// belongs to the share depends only on its ID and the ID of the orchestration. In the same orchestration, a larger share
	// therefore contains all instances of a smaller one.
	Percentage Share `json:"percentage,omitempty"`
}

// Share is a percentage from 1 to 100, or 0 if it is absent.
type Share int

// UnmarshalJSON decodes a number or null. It turns 0 into -1, which problems rejects: as an absent percentage, 0 would select all
// instances instead of none.
func (s *Share) UnmarshalJSON(encoded []byte) error {
	var number *int
	if err := json.Unmarshal(encoded, &number); err != nil {
		return fmt.Errorf("decoding a percentage: %w", err)
	}

	switch {
	case number == nil:
		*s = 0
	case *number == 0:
		*s = -1
	default:
		*s = Share(*number)
	}

	return nil
}

// RuntimeStates returns the valid values of Target.State.
func RuntimeStates() []string {
	return []string{"provisioning", "succeeded", "failed", "updating", "upgrading", "suspending", "suspended", "resuming", "deprovisioning"}
}

// Candidate contains the fields of an instance that are compared with targets.
type Candidate struct {
	GlobalAccount, SubAccount, Region, RuntimeID, PlanName, Shoot, InstanceID, State string

	KubernetesVersion, KymaVersion string
	Labels                         map[string]string
}

// patterns returns the regular expressions of the target, keyed by field name.
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
	case t.Target == targetAll && t != Target{Target: targetAll, Percentage: t.Percentage}:
		problems = append(problems, fmt.Sprintf("target %q allows no field except percentage", targetAll))
	}

	if t.Percentage < 0 || t.Percentage > maxPercentage {
		problems = append(problems, fmt.Sprintf("percentage must be a number from 1 to %d", maxPercentage))
	}

	if t.State != "" && !slices.Contains(RuntimeStates(), t.State) {
		problems = append(problems, "state must be one of "+strings.Join(RuntimeStates(), ", "))
	}

	if t.RuntimeID != "" && t.beyondRuntime() {
		problems = append(problems, "runtimeID cannot be combined with state, versions, labels or percentage")
	}

	if _, err := labels.Parse(t.Labels); err != nil {
		problems = append(problems, "labels: "+failure.Of(err).Text)
	}

	for name, pattern := range t.patterns() {
		if len(pattern) > maxPattern {
			problems = append(problems, fmt.Sprintf("%s has %d bytes, but at most %d are allowed", name, len(pattern), maxPattern))
		} else if _, err := regexp.Compile(pattern); err != nil {
			problems = append(problems, name+" is not a valid regular expression (RE2)")
		}
	}

	for _, value := range []string{t.RuntimeID, t.PlanName, t.Shoot, t.InstanceID, t.State, t.KubernetesVersion, t.KymaVersion} {
		if len(value) > maxValue {
			problems = append(problems, fmt.Sprintf("a field has %d bytes, but at most %d are allowed", len(value), maxValue))
		}
	}

	slices.Sort(problems)

	return problems
}

// beyondRuntime reports whether the target has fields that must not be combined with RuntimeID, because Kyma Environment Broker
// does not have these fields. The other fields are ignored if RuntimeID is set, as in Kyma Environment Broker.
func (t Target) beyondRuntime() bool {
	return t.State != "" || t.byVersion() || t.Labels != "" || t.Percentage != 0
}

// byVersion reports whether the target selects instances by their versions.
func (t Target) byVersion() bool { return t.KubernetesVersion != "" || t.KymaVersion != "" }

// ByVersion reports whether any entry selects instances by their versions. If none does, candidates need no versions.
func (t Targets) ByVersion() bool {
	return slices.ContainsFunc(t.Include, Target.byVersion) || slices.ContainsFunc(t.Exclude, Target.byVersion)
}

// ByLabel reports whether any entry selects instances by their labels. If none does, candidates need no labels.
func (t Targets) ByLabel() bool {
	byLabel := func(target Target) bool { return target.Labels != "" }

	return slices.ContainsFunc(t.Include, byLabel) || slices.ContainsFunc(t.Exclude, byLabel)
}

// Selector selects the instances that match Targets.
type Selector struct {
	include, exclude []matcher
	// seed is the orchestration ID. It determines which instances Target.Percentage selects.
	seed string
}

// matcher is a target with its compiled regular expressions, which are nil for empty fields.
type matcher struct {
	Target

	globalAccount, subAccount, region *regexp.Regexp
	labels                            []labels.Condition
}

// NewSelector compiles the targets of the orchestration. They must be valid: see Parameters.Complete.
func NewSelector(targets Targets, orchestrationID string) Selector {
	return Selector{include: matchers(targets.Include), exclude: matchers(targets.Exclude), seed: orchestrationID}
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
		conditions, _ := labels.Parse(target.Labels)

		compiled = append(compiled, matcher{
			Target: target, globalAccount: compile(target.GlobalAccount), subAccount: compile(target.SubAccount), region: compile(target.Region),
			labels: conditions,
		})
	}

	return compiled
}

// Selects reports whether the targets select the instance.
func (s Selector) Selects(candidate Candidate) bool {
	matches := func(matcher matcher) bool {
		return matcher.matches(candidate) && (matcher.Percentage == 0 ||
			Rank(s.seed, candidate.InstanceID) < uint64(matcher.Percentage)*(ranks/maxPercentage)) //nolint:gosec // from 1 to 100
	}

	return slices.ContainsFunc(s.include, matches) && !slices.ContainsFunc(s.exclude, matches)
}

// ranks is the number of values that Rank can return.
const ranks = 1_000_000

// Rank puts the instances of an orchestration in a random but stable order. It returns a number below 1,000,000. Equal ranks are
// possible.
func Rank(orchestrationID, instanceID string) uint64 {
	sum := sha256.Sum256([]byte(orchestrationID + "/" + instanceID))

	return binary.BigEndian.Uint64(sum[:]) % ranks
}

func (m matcher) matches(candidate Candidate) bool {
	if m.Target.Target == targetAll {
		return true
	}

	if m.RuntimeID != "" {
		return m.RuntimeID == candidate.RuntimeID
	}

	return found(m.globalAccount, candidate.GlobalAccount) && found(m.subAccount, candidate.SubAccount) && found(m.region, candidate.Region) &&
		equal(m.PlanName, candidate.PlanName) && equal(m.Shoot, candidate.Shoot) && equal(m.InstanceID, candidate.InstanceID) &&
		equal(m.State, candidate.State) && IsVersion(m.KubernetesVersion, candidate.KubernetesVersion) && IsVersion(m.KymaVersion, candidate.KymaVersion) &&
		!slices.ContainsFunc(m.labels, func(condition labels.Condition) bool { return !condition.Matches(candidate.Labels) })
}

func found(pattern *regexp.Regexp, value string) bool {
	return pattern == nil || pattern.MatchString(value)
}

func equal(wanted, value string) bool { return wanted == "" || wanted == value }

// IsVersion reports whether value is the wanted version, or begins with the wanted version and a dot. If wanted is empty, it
// returns true.
func IsVersion(wanted, value string) bool {
	return equal(wanted, value) || strings.HasPrefix(value, wanted+".")
}
