package crashtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Mode is what goes wrong at a point.
type Mode string

// The modes. A replica that died is replaced; one that was frozen goes on beside its replacement, the call included.
const (
	DiesBefore Mode = "before" // the replica dies, the call is never made
	DiesAfter  Mode = "after"  // the call is made, the replica dies before it knows
	AnswerLost Mode = "lost"   // the call is made, an error comes back, the replica goes on
	Unsent     Mode = "unsent" // the call is not made, an error comes back, the replica goes on
	Freezes    Mode = "frozen" // the replica stands still beyond its lease, then makes the call
)

// freeze is how long a frozen replica stands still: longer than a lease, so that another one takes over.
const freeze = 15 * time.Second

var (
	// ErrLost is what a caller gets whose call or whose answer was lost.
	ErrLost = errors.New("the connection was lost")
	errDead = errors.New("this replica is dead")
)

// Point is the nth call of a name in a story, counted from 1.
type Point struct {
	Name string
	N    int
}

func (p Point) String() string { return fmt.Sprintf("%s-%d", p.Name, p.N) }

// Fault is what goes wrong, and where.
type Fault struct {
	Point

	Mode Mode
}

func (f Fault) String() string { return f.Point.String() + "/" + string(f.Mode) }

// name of a run in which all of it goes wrong.
func name(plan []Fault) string {
	parts := make([]string, 0, len(plan))
	for _, fault := range plan {
		parts = append(parts, fault.String())
	}

	return strings.Join(parts, "+")
}

// faults counts the calls of all replicas and says which of them go wrong.
type faults struct {
	plan []Fault

	mutex    sync.Mutex
	begun    bool
	counts   map[string]int
	possible []Fault
	happened int
}

func newFaults(plan []Fault) *faults { return &faults{plan: plan, counts: map[string]int{}} }

// begin has calls be fault points from now on.
func (f *faults) begin() {
	f.mutex.Lock()
	defer f.mutex.Unlock()

	f.begun = true
}

// next counts a call that could go wrong in these ways and returns how it does, or nothing.
func (f *faults) next(name string, modes ...Mode) Mode {
	f.mutex.Lock()
	defer f.mutex.Unlock()

	if !f.begun {
		return ""
	}

	f.counts[name]++
	point := Point{Name: name, N: f.counts[name]}

	for _, mode := range modes {
		f.possible = append(f.possible, Fault{Point: point, Mode: mode})
	}

	for _, fault := range f.plan {
		if fault.Point == point && slices.Contains(modes, fault.Mode) {
			f.happened++

			return fault.Mode
		}
	}

	return ""
}
