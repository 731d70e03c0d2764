package fleet_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment/fleet"
)

func members(count int, ring func(i int) string) []fleet.Member {
	all := make([]fleet.Member, 0, count)
	for i := range count {
		all = append(all, fleet.Member{InstanceID: fmt.Sprint("i", i), Labels: map[string]string{"ring": ring(i)}})
	}

	return all
}

func TestAssign(t *testing.T) {
	ring := func(i int) string { return []string{"early", "late"}[i%2] }

	for name, c := range map[string]struct {
		reason string
		waves  []fleet.Wave
		count  int
		want   []int // the number of members in each wave
	}{
		"none":             {"all targets are in one wave", nil, 7, []int{7}},
		"number":           {"so many", []fleet.Wave{{Number: 2}}, 7, []int{2, 5}},
		"large number":     {"no more than there are", []fleet.Wave{{Number: 9}, {Number: 1}}, 7, []int{7}},
		"percentage":       {"a part of all targets", []fleet.Wave{{Percentage: 10}, {Percentage: 50}}, 20, []int{2, 10, 8}},
		"small percentage": {"a canary has at least one target", []fleet.Wave{{Percentage: 1}}, 7, []int{1, 6}},
		"whole":            {"nothing is left", []fleet.Wave{{Percentage: 100}}, 7, []int{7}},
		"label":            {"those with the label", []fleet.Wave{{Labels: "ring=early"}}, 7, []int{4, 3}},
		"label of none":    {"a wave can be empty", []fleet.Wave{{Labels: "ring=other"}, {Number: 1}}, 3, []int{0, 1, 2}},
		"label and number": {"each target is in one wave", []fleet.Wave{{Number: 3}, {Labels: "ring"}}, 7, []int{3, 4}},
		"no targets":       {"nothing to assign", []fleet.Wave{{Percentage: 10}}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			assigned := fleet.Assign(c.waves, "o", members(c.count, ring))

			var got []int
			for _, wave := range assigned {
				for len(got) < wave {
					got = append(got, 0)
				}

				got[wave-1]++
			}

			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}

			if !slices.Equal(assigned, fleet.Assign(c.waves, "o", members(c.count, ring))) {
				t.Error("the second assignment differs")
			}
		})
	}

	canary := []fleet.Wave{{Percentage: 10}}
	if slices.Equal(fleet.Assign(canary, "o", members(100, ring)), fleet.Assign(canary, "p", members(100, ring))) {
		t.Error("two orchestrations have the same canaries")
	}
}

func TestFailureGate(t *testing.T) {
	for name, c := range map[string]struct {
		gate            fleet.FailureGate
		failed, targets int
		want            bool
	}{
		"no limit":         {fleet.FailureGate{}, 5, 5, false},
		"below the number": {fleet.FailureGate{Failures: 3}, 2, 2, false},
		"number":           {fleet.FailureGate{Failures: 3}, 3, 100, true},
		"below the part":   {fleet.FailureGate{Percentage: 10}, 1, 11, false},
		"part":             {fleet.FailureGate{Percentage: 10}, 1, 10, true},
		"no failure":       {fleet.FailureGate{Percentage: 1}, 0, 0, false},
		"either":           {fleet.FailureGate{Failures: 3, Percentage: 50}, 3, 100, true},
	} {
		if got := c.gate.Closed(c.failed, c.targets); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
