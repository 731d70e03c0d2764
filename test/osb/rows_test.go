package osb

import (
	"maps"
	"testing"
)

// row runs the test of one row of the matrix. All rows share one environment, but each row has its own tenant.
type row struct {
	platform

	t *testing.T
}

func newRow(t *testing.T, e *env) *row {
	t.Helper()

	return &row{platform: newPlatform(t, e), t: t}
}

// isolated starts a separate environment for this row, because the row needs different settings or restarts the broker.
func (r *row) isolated(settings ...setting) platform {
	r.Helper()

	return newPlatform(r.Reporter, start(r.t, settings...))
}

// TestRows runs the tests of all rows. To run a single row, use -run 'TestRows/rows/^D10_'.
func TestRows(t *testing.T) {
	e := start(t)

	t.Run("rows", func(t *testing.T) {
		for _, each := range matrix() {
			t.Run(each.id+" "+each.text, func(t *testing.T) {
				t.Parallel()
				each.test(newRow(t, e))
			})
		}
	})
}

// TestMatrix checks the number of rows in each section, and that every row has a unique ID, a level, a text and a test.
func TestMatrix(t *testing.T) {
	known := map[string]bool{}
	counts := map[string]int{}

	for _, each := range matrix() {
		if known[each.id] || each.text == "" || each.level == "" || each.test == nil {
			t.Errorf("row %s is a duplicate, or lacks its level, text or test", each.id)
		}

		known[each.id] = true
		counts[each.id[:1]]++
	}

	want := map[string]int{
		"A": 26, "B": 27, "C": 18, "D": 19, "E": 10, "F": 20, "G": 22, "H": 8, "I": 6, "J": 18, "K": 5, "M": 6,
	}
	if !maps.Equal(want, counts) {
		t.Errorf("rows of each section: want %v, got %v", want, counts)
	}
}
