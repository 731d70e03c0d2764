package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/labels"
)

const (
	// maxWaves is the maximum number of waves in an orchestration.
	maxWaves = 20
	// maxSoak is the maximum time between two waves.
	maxSoak = 30 * 24 * time.Hour
)

// Wave is a part of the targets. A wave begins when all upgrades of earlier waves have ended and the soak time has passed.
// Exactly one of Number, Percentage and Labels selects its targets from those that no earlier wave contains. Targets that no wave
// selects form an additional last wave.
type Wave struct {
	// Number is the number of targets in the wave. Percentage, from 1 to 100, is the share of all targets that the wave contains;
	// the resulting number of targets is rounded up. In both cases, the targets are chosen at random.
	Number     int `json:"number,omitempty"`
	Percentage int `json:"percentage,omitempty"`
	// Labels selects targets by a selector in the syntax of labels.Parse.
	Labels string `json:"labels,omitempty"`
	// Soak is the time between the end of this wave and the start of the next one, such as 2h30m. Empty means that the next wave
	// starts immediately.
	Soak string `json:"soak,omitempty"`
}

// SoakTime returns Soak as a duration. Soak must be valid.
func (w Wave) SoakTime() time.Duration {
	soak, _ := time.ParseDuration(w.Soak)

	return soak
}

// problem describes the first mistake in the wave. It returns an empty string if the wave is valid.
func (w Wave) problem() string {
	given := 0

	for _, is := range []bool{w.Number != 0, w.Percentage != 0, w.Labels != ""} {
		if is {
			given++
		}
	}

	if given != 1 {
		return "it must have exactly one of number, percentage and labels"
	}

	if w.Number < 0 || w.Percentage < 0 || w.Percentage > maxPercentage {
		return fmt.Sprintf("number must be positive, and percentage a number from 1 to %d", maxPercentage)
	}

	if _, err := labels.Parse(w.Labels); err != nil {
		return "labels: " + failure.Of(err).Text
	}

	if soak, err := time.ParseDuration(w.Soak); w.Soak != "" && (err != nil || soak < 0 || soak > maxSoak) {
		return fmt.Sprintf("soak must be a duration such as 2h30m, of at most %d days", int(maxSoak.Hours()/24))
	}

	return ""
}

// FailureGate stops an orchestration when too many upgrades have failed. It counts only targets in waves that have begun.
// Failures before an operator last resumed the orchestration after the gate had stopped it do not count.
type FailureGate struct {
	// Failures is the number of failed upgrades at which the orchestration stops. 0 means no limit.
	Failures int `json:"failures,omitempty"`
	// Percentage is the share of failed targets at which the orchestration stops, from 1 to 100. 0 means no limit.
	Percentage int `json:"percentage,omitempty"`
}

// Closed reports whether the gate stops the orchestration. failed is the number of targets that have failed, out of the given
// number of targets.
func (g FailureGate) Closed(failed, targets int) bool {
	return failed > 0 && (g.Failures > 0 && failed >= g.Failures || g.Percentage > 0 && failed*maxPercentage >= g.Percentage*targets)
}

// validateWaves rejects invalid waves and an invalid failure gate.
func (s Strategy) validateWaves() error {
	if len(s.Waves) > maxWaves {
		return invalid("strategy.waves has %d entries. At most %d are allowed.", len(s.Waves), maxWaves)
	}

	for i, wave := range s.Waves {
		if problem := wave.problem(); problem != "" {
			return invalid("strategy.waves[%d]: %s.", i, problem)
		}
	}

	if gate := s.FailureGate; gate != nil && (gate.Failures < 0 || gate.Percentage < 0 || gate.Percentage > maxPercentage || *gate == FailureGate{}) {
		return invalid("strategy.failureGate must contain failures (a positive number), percentage (a number from 1 to %d), or both.", maxPercentage)
	}

	return nil
}

// Member is a target for Assign. Labels can be nil if no wave selects by labels.
type Member struct {
	InstanceID string
	Labels     map[string]string
}

// Assign returns the number of each member's wave, from 1. The random choice depends only on the ID of the orchestration, so
// repeated calls return the same result.
func Assign(waves []Wave, orchestrationID string, members []Member) []int {
	assigned, order := make([]int, len(members)), make([]int, len(members))
	for i := range order {
		order[i] = i
	}

	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(Rank(orchestrationID, members[a].InstanceID), Rank(orchestrationID, members[b].InstanceID)),
			cmp.Compare(members[a].InstanceID, members[b].InstanceID))
	})

	for number, wave := range waves {
		conditions, _ := labels.Parse(wave.Labels)

		limit := len(members) // no limit in a wave that selects by labels
		if wave.Labels == "" {
			limit = cmp.Or(wave.Number, (wave.Percentage*len(members)+maxPercentage-1)/maxPercentage)
		}

		for _, member := range order {
			matches := !slices.ContainsFunc(conditions, func(condition labels.Condition) bool { return !condition.Matches(members[member].Labels) })
			if limit > 0 && assigned[member] == 0 && matches {
				assigned[member] = number + 1
				limit--
			}
		}
	}

	for i := range assigned {
		assigned[i] = cmp.Or(assigned[i], len(waves)+1)
	}

	return assigned
}

// ByLabel reports whether any wave selects targets by labels. If not, callers of Assign may omit the labels of members.
func (s Strategy) ByLabel() bool {
	return slices.ContainsFunc(s.Waves, func(wave Wave) bool { return wave.Labels != "" })
}
