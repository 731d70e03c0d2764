package report_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/test/bench/report"
)

func TestPercentile(t *testing.T) {
	t.Parallel()

	hundred := make([]int, 0, 100)
	for value := range 100 {
		hundred = append(hundred, 100-value)
	}

	cases := map[string]struct {
		reason string
		values []int
		share  float64
		want   int
	}{
		"99th of a hundred":  {reason: "one of a hundred values may exceed it", values: hundred, share: 0.99, want: 99},
		"Half of a hundred":  {reason: "fifty values do not exceed it", values: hundred, share: 0.5, want: 50},
		"All":                {reason: "no value exceeds the largest", values: hundred, share: 1, want: 100},
		"None":               {reason: "the result is always a measured value", values: hundred, share: 0, want: 1},
		"99th of few":        {reason: "the 99th percentile of few values is the largest", values: []int{3, 1, 2}, share: 0.99, want: 3},
		"Of one":             {reason: "one value is every percentile", values: []int{7}, share: 0.5, want: 7},
		"Of no value at all": {reason: "nothing was measured", values: nil, share: 0.5, want: 0},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			given := slices.Clone(tc.values)

			if got := report.Percentile(tc.values, tc.share); got != tc.want {
				t.Errorf("%s\nwant %d, got %d", tc.reason, tc.want, got)
			}

			if diff := cmp.Diff(given, tc.values); diff != "" {
				t.Errorf("the values must keep their order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		values []float64
		want   float64
	}{
		"Odd":     {reason: "one outlier does not count", values: []float64{5, 900, 4, 6, 5.5}, want: 5.5},
		"Even":    {reason: "the result is a measured value, the lower one", values: []float64{4, 1, 3, 2}, want: 2},
		"Nothing": {reason: "nothing was measured", values: nil, want: 0},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := report.Median(tc.values); got != tc.want {
				t.Errorf("%s\nwant %g, got %g", tc.reason, tc.want, got)
			}
		})
	}
}

func TestFloor(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason         string
		values, floors []float64
		share          float64
		want           string
	}{
		"Reached": {
			reason: "the ratio equals the target",
			values: []float64{500}, floors: []float64{1000}, share: 50,
			want: "| rate | 500 | 1000 | 50 % | ≥ 50 % of the floor | yes |\n",
		},
		"Not reached": {
			reason: "the target applies to the exact ratio, not to the rounded one",
			values: []float64{499}, floors: []float64{1000}, share: 50,
			want: "| rate | 499 | 1000 | 50 % | ≥ 50 % of the floor | **no** |\n",
		},
		"Machine that slows down": {
			reason: "each sample is compared to the floor of its round: 60, 50 and 60 percent; the ratio of the medians would be 50",
			values: []float64{600, 500, 60}, floors: []float64{1000, 1000, 100}, share: 60,
			want: "| rate | 500 | 1000 | 60 % | ≥ 60 % of the floor | yes |\n",
		},
		"No target": {
			reason: "without a target there is no verdict",
			values: []float64{1}, floors: []float64{1000},
			want: "| rate | 1 | 1000 | 0 % |  |  |\n",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var table report.Table
			for i, value := range tc.values {
				table.AddWithFloor(report.Figure{Name: "rate", FloorShare: tc.share}, value, tc.floors[i])
			}

			if diff := cmp.Diff(tc.want, table.String()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTable checks that rows are in the order of their first samples, and contain the medians of their values and the latest note.
func TestTable(t *testing.T) {
	t.Parallel()

	var table report.Table
	for round, note := range []string{"first round", "second round", "last round"} {
		table.Add(report.Figure{Name: "memory", Unit: "MiB", AtMost: 90}, 90.04+float64(round))
		table.Add(report.Figure{Name: "calls", AtMost: 2, Note: note}, 1.406)
		table.Add(report.Figure{Name: "operations/s", AtLeast: 200}, 237.6)
	}

	table.Fail("idle")

	want := `| memory | 91.0 MiB |  |  | ≤ 90 MiB | **no** |
| calls | 1.41 (last round) |  |  | ≤ 2 | yes |
| operations/s | 238 |  |  | ≥ 200 | yes |
| idle | could not be measured |  |  |  | **no** |
`
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}

	medians := map[string]float64{"memory": 91.04, "calls": 1.406, "operations/s": 237.6}
	if diff := cmp.Diff(medians, maps.Collect(table.Medians())); diff != "" {
		t.Errorf("medians (-want +got):\n%s", diff)
	}
}
