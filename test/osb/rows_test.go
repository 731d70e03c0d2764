package osb

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// row is the test of a row of the specification. It runs against a landscape that all rows share, as a tenant of its own.
type row struct {
	visitor

	t *testing.T
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

				play(t, l, each.id, tests[each.id])
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

	for id, reason := range pending() {
		if !known[id] && stories()[id] == nil || reason == "" {
			t.Errorf("%q is pending, which is no row and no story, or has no reason", id)
		}
	}
}

// play runs the test of a row. A pending row has to fail; that it does is no failure of the test.
func play(t *testing.T, l *landscape, id string, test func(*row)) {
	t.Helper()

	reason, isPending := pending()[id]
	if !isPending {
		test(&row{visitor: newVisitor(t, l), t: t})

		return
	}

	noted := &notebook{}
	ended := make(chan struct{})

	go func() {
		defer close(ended)

		test(&row{visitor: newVisitor(noted, l), t: t})
	}()

	<-ended

	if failures := noted.read(); len(failures) > 0 {
		t.Logf("pending, %s:\n%s", reason, strings.Join(failures, "\n"))
	} else {
		t.Errorf("%s is pending (%s), and it passes: take it out of the list", id, reason)
	}
}

// notebook keeps the failures of a pending row.
type notebook struct {
	mutex    sync.Mutex
	failures []string
}

var _ judge = (*notebook)(nil)

func (*notebook) Helper() {}

func (n *notebook) Errorf(format string, args ...any) {
	n.mutex.Lock()
	defer n.mutex.Unlock()

	n.failures = append(n.failures, fmt.Sprintf(format, args...))
}

func (n *notebook) Fatalf(format string, args ...any) {
	n.Errorf(format, args...)
	runtime.Goexit()
}

func (n *notebook) read() []string {
	n.mutex.Lock()
	defer n.mutex.Unlock()

	return slices.Clone(n.failures)
}
