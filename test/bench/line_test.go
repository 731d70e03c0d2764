package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBesideFloor(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason         string
		values, floors []float64
		share          float64
		want           line
	}{
		"Reached": {
			reason: "the ratio equals the target",
			values: []float64{500}, floors: []float64{1000}, share: 0.5,
			want: line{what: "rate", measured: "500", floor: "1000", ratio: "50 %", must: "≥ 50 % of the floor", reached: "yes"},
		},
		"Not reached": {
			reason: "the target applies to the exact ratio, not to the rounded one",
			values: []float64{499}, floors: []float64{1000}, share: 0.5,
			want: line{what: "rate", measured: "499", floor: "1000", ratio: "50 %", must: "≥ 50 % of the floor", reached: "**no**"},
		},
		"Machine that slows down": {
			reason: "each run is compared to the floor of its round: 60, 50 and 60 percent; the medians would make 50",
			values: []float64{600, 500, 60}, floors: []float64{1000, 1000, 100}, share: 0.6,
			want: line{what: "rate", measured: "500", floor: "1000", ratio: "60 %", must: "≥ 60 % of the floor", reached: "yes"},
		},
		"No target": {
			reason: "without a target there is no verdict",
			values: []float64{1}, floors: []float64{1000},
			want: line{what: "rate", measured: "1", floor: "1000", ratio: "0 %"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(tc.want, besideFloor("rate", tc.values, tc.floors, tc.share), cmp.AllowUnexported(line{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestChosen(t *testing.T) {
	t.Parallel()

	all, err := chosen("")
	if err != nil || len(all) != len(figures()) {
		t.Errorf("without names, want all figures, got %s and %v", knownNames(all), err)
	}

	some, err := chosen("idle,accept")
	if got := knownNames(some); err != nil || got != "accept, idle" {
		t.Errorf("want the order of the page, got %s and %v", got, err)
	}

	if _, err := chosen("accept,acept"); err == nil {
		t.Error("an unknown name is accepted")
	}
}
