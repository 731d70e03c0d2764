package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Percentile returns the smallest value that at least the share of the values does not exceed; the share of the 99th percentile is 0.99.
// Without values it returns zero.
func Percentile[Value cmp.Ordered](values []Value, share float64) Value {
	if len(values) == 0 {
		var none Value

		return none
	}

	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(share * float64(len(sorted))))

	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median returns the middle value, the lower of two if the number of values is even. It is always a measured value.
func Median[Value cmp.Ordered](values []Value) Value {
	const half = 0.5

	return Percentile(values, half)
}

// MedianOf returns the median of one value of each run.
func MedianOf[Run any, Value cmp.Ordered](runs []Run, value func(Run) Value) Value {
	values := make([]Value, 0, len(runs))
	for _, run := range runs {
		values = append(values, value(run))
	}

	return Median(values)
}

// Ratios divides each value by the floor of the same round. Both slices have the same length.
func Ratios(values, floors []float64) []float64 {
	ratios := make([]float64, 0, len(values))

	for i, value := range values {
		ratios = append(ratios, value/floors[i])
	}

	return ratios
}

// Subject is a measurement that alternates with others. Run does it once.
type Subject[Value any] struct {
	Name string
	Run  func() (Value, error)
}

// InTurn runs the subjects alternately, once a round: A B, A B, … Temporary load on the machine then affects all of them. It returns the
// values of each subject by its name, in the order of the rounds. The first error ends the measurement, and no values are returned.
func InTurn[Value any](rounds int, subjects ...Subject[Value]) (map[string][]Value, error) {
	values := make(map[string][]Value, len(subjects))

	for round := range rounds {
		for _, subject := range subjects {
			value, err := subject.Run()
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", subject.Name, round+1, err)
			}

			values[subject.Name] = append(values[subject.Name], value)
		}
	}

	return values, nil
}
