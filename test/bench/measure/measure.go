package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Percentile returns the smallest value that at least that share of the values does not exceed: 0.99 for the 99th percentile.
// Without values it is zero.
func Percentile[Value cmp.Ordered](values []Value, share float64) Value {
	if len(values) == 0 {
		var none Value

		return none
	}

	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(share * float64(len(sorted))))

	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median returns the value in the middle, of an even number of values the lower of the two.
func Median[Value cmp.Ordered](values []Value) Value {
	const half = 0.5

	return Percentile(values, half)
}

// Ratios divides each value by the one of the same run.
func Ratios(values, floors []float64) []float64 {
	ratios := make([]float64, 0, len(values))

	for i, value := range values {
		ratios = append(ratios, value/floors[i])
	}

	return ratios
}

// Subject is one of the things that are measured in turn.
type Subject[Value any] struct {
	Name string
	Run  func() (Value, error)
}

// InTurn measures the subjects one after the other, and that as many times as there are rounds: A B, A B, … What slows the machine
// down for a while then slows all of them down. It returns the values by the name of the subject, in the order of the rounds.
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
