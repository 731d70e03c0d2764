package measure_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/test/bench/measure"
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
		"99th of few":        {reason: "of few values, it is the largest", values: []int{3, 1, 2}, share: 0.99, want: 3},
		"Of one":             {reason: "one value is every percentile", values: []int{7}, share: 0.5, want: 7},
		"Of no value at all": {reason: "nothing was measured", values: nil, share: 0.5, want: 0},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			given := slices.Clone(tc.values)

			if got := measure.Percentile(tc.values, tc.share); got != tc.want {
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

			if got := measure.Median(tc.values); got != tc.want {
				t.Errorf("%s\nwant %g, got %g", tc.reason, tc.want, got)
			}
		})
	}
}

// TestRatios: a run is compared to the floor of its round.
func TestRatios(t *testing.T) {
	t.Parallel()

	got := measure.Ratios([]float64{50, 20}, []float64{100, 80})
	if diff := cmp.Diff([]float64{0.5, 0.25}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestInTurn(t *testing.T) {
	t.Parallel()

	var order []string

	subject := func(name string) measure.Subject[int] {
		return measure.Subject[int]{Name: name, Run: func() (int, error) {
			order = append(order, name)

			return len(order), nil
		}}
	}

	values, err := measure.InTurn(3, subject("floor"), subject("broker"))
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"floor", "broker", "floor", "broker", "floor", "broker"}, order); diff != "" {
		t.Errorf("the subjects must alternate (-want +got):\n%s", diff)
	}

	if diff := cmp.Diff(map[string][]int{"floor": {1, 3, 5}, "broker": {2, 4, 6}}, values); diff != "" {
		t.Errorf("values must be in the order of the rounds (-want +got):\n%s", diff)
	}
}

// TestInTurnStops: a failed run fails the measurement instead of being left out.
func TestInTurnStops(t *testing.T) {
	t.Parallel()

	broken := errors.New("no answer")

	values, err := measure.InTurn(5, measure.Subject[int]{Name: "broker", Run: func() (int, error) { return 1, broken }})
	if !errors.Is(err, broken) || values != nil {
		t.Errorf("want the error and no values, got %v and %v", err, values)
	}
}
