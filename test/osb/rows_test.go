package osb

import (
	"maps"
	"testing"
)

// row is the test of a row of the specification. It runs against a landscape that all rows share, as a tenant of its own.
type row struct {
	visitor

	t *testing.T
}

func newRow(t *testing.T, l *landscape) *row {
	t.Helper()

	return &row{visitor: newVisitor(t, l), t: t}
}

// own runs a landscape for this row alone, for what the others cannot stand: another configuration, a restart.
func (r *row) own(settings ...setting) visitor {
	r.Helper()

	return newVisitor(r.judge, start(r.t, settings...))
}

// sections are the tests of all rows, by the ids of the rows.
func sections() []map[string]func(*row) {
	return []map[string]func(*row){
		requestRows(), catalogRows(), operationRows(), provisionRows(), fetchRows(), updateRows(), bindRows(), unbindRows(),
		fetchBindingRows(), deprovisionRows(), profileRows(), platformRows(),
	}
}

// TestRows holds the broker against every row of the specification. One row alone: -run 'TestRows/^D10_'.
func TestRows(t *testing.T) {
	tests := map[string]func(*row){}
	for _, section := range sections() {
		maps.Copy(tests, section)
	}

	l := start(t)

	t.Run("rows", func(t *testing.T) {
		for _, each := range matrix() {
			t.Run(each.id+" "+each.text, func(t *testing.T) {
				t.Parallel()

				if tests[each.id] == nil {
					t.Fatalf("%s (%s) has no test", each.id, each.level)
				}

				tests[each.id](newRow(t, l))
			})
		}
	})
}

// TestMatrix holds that the list of rows is whole, and that there is no test and no excuse for a row that does not exist.
func TestMatrix(t *testing.T) {
	known := map[string]bool{}
	counts := map[string]int{}

	for _, each := range matrix() {
		if known[each.id] || each.text == "" || each.level == "" {
			t.Errorf("row %s is there twice, or lacks its level or its text", each.id)
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

	for _, section := range sections() {
		for id := range section {
			if !known[id] {
				t.Errorf("there is a test of %s, which is no row", id)
			}
		}
	}
}
