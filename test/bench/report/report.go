// Package report collects the samples of a benchmark, one per round, and renders their medians as the rows of a Markdown table.
//
// A figure that depends on the machine is sampled together with a floor: the cost of the minimal work that the request cannot
// avoid, measured in the same round. The table then shows the median of the ratios, because a temporarily slow machine affects the
// figure and its floor alike.
//
// A new column needs a field of [Figure] and a cell in row.cells.
package report

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Header is the header of the Markdown table. The rows of one or more [Table] values follow it.
const Header = `| figure | measured | floor | ratio | target | reached |
|---|---|---|---|---|---|
`

// Percentile returns the smallest value such that at least the given share of the values are less than or equal to it. For the 99th
// percentile, share is 0.99. The result is always one of the values, or zero if values is empty.
func Percentile[Value cmp.Ordered](values []Value, share float64) Value {
	if len(values) == 0 {
		var none Value

		return none
	}

	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(share * float64(len(sorted))))

	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median returns the middle value, or the lower of the two middle values if the number of values is even.
func Median[Value cmp.Ordered](values []Value) Value {
	const half = 0.5

	return Percentile(values, half)
}

// Figure describes a row of the table. A zero target means that the figure has no target.
type Figure struct {
	// Name identifies the row within its table.
	Name string
	// Unit is printed after the value, for example ms or MiB. It is empty if the name contains the unit.
	Unit string
	// AtLeast and AtMost are inclusive targets for the median value. A figure sets at most one of them.
	AtLeast, AtMost float64
	// FloorShare is the minimum target for the median ratio of the value to the floor, in percent.
	FloorShare float64
	// Note is printed in parentheses after the value and explains it. The table shows the note of the last round.
	Note string
}

// Table contains the samples of figures. Its rows are in the order in which their first samples were added. The zero value is an
// empty table. A Table must not be used concurrently.
type Table struct{ rows []*row }

// row contains the samples of a figure. ratios has one entry for each sample with a floor.
type row struct {
	Figure

	values, floors, ratios []float64
	failed                 bool
}

// Add adds a sample of a figure.
func (t *Table) Add(figure Figure, value float64) {
	row := t.row(figure)
	row.values = append(row.values, value)
}

// AddWithFloor adds a sample of a figure together with the floor of the same round.
func (t *Table) AddWithFloor(figure Figure, value, floor float64) {
	t.Add(figure, value)

	row := t.row(figure)
	row.floors, row.ratios = append(row.floors, floor), append(row.ratios, value/floor)
}

// Fail adds a row that reports a failed measurement.
func (t *Table) Fail(name string) { t.row(Figure{Name: name}).failed = true }

// row returns the row with the figure's name and sets its Figure. It adds the row if there is none.
func (t *Table) row(figure Figure) *row {
	for _, row := range t.rows {
		if row.Name == figure.Name {
			row.Figure = figure

			return row
		}
	}

	added := &row{Figure: figure}
	t.rows = append(t.rows, added)

	return added
}

// Medians yields the name and the median of each measured figure, in the order of the table.
func (t *Table) Medians() iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for _, row := range t.rows {
			if !row.failed && !yield(row.Name, Median(row.values)) {
				return
			}
		}
	}
}

// String returns the rows in Markdown, without the [Header].
func (t *Table) String() string {
	var text strings.Builder

	for _, row := range t.rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row.cells(), " | "))
	}

	return text.String()
}

// cells returns the cells of the row in the order of the [Header]. A figure shows at most one target: FloorShare if it is set, or
// else the target for its value.
func (r *row) cells() []string {
	if r.failed {
		return []string{r.Name, "could not be measured", "", "", "", verdict(false)}
	}

	value := Median(r.values)

	measured := format(value, r.Unit)
	if r.Note != "" {
		measured += " (" + r.Note + ")"
	}

	var (
		floor, ratio, target, reached string

		share = 100 * Median(r.ratios)
	)

	if len(r.floors) > 0 {
		floor, ratio = format(Median(r.floors), r.Unit), fmt.Sprintf("%.0f %%", share)
	}

	switch {
	case r.FloorShare > 0:
		target, reached = fmt.Sprintf("≥ %g %% of the floor", r.FloorShare), verdict(share >= r.FloorShare)
	case r.AtLeast > 0:
		target, reached = "≥ "+format(r.AtLeast, r.Unit), verdict(value >= r.AtLeast)
	case r.AtMost > 0:
		target, reached = "≤ "+format(r.AtMost, r.Unit), verdict(value <= r.AtMost)
	}

	return []string{r.Name, measured, floor, ratio, target, reached}
}

// verdict returns the cell of the "reached" column for a row that has a target or could not be measured.
func verdict(holds bool) string {
	if holds {
		return "yes"
	}

	return "**no**"
}

// format returns a value with up to three significant digits, but never drops digits of the integer part. Integers have no
// fraction.
func format(value float64, unit string) string {
	decimals := 0

	switch {
	case value == math.Trunc(value):
	case math.Abs(value) < 10:
		decimals = 2
	case math.Abs(value) < 100:
		decimals = 1
	}

	return strings.TrimSpace(strconv.FormatFloat(value, 'f', decimals, 64) + " " + unit)
}
