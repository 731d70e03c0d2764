package crashtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// Mode is a kind of fault.
type Mode string

// The modes of faults. A dead replica is replaced. A frozen replica continues with the call after another replica has taken
// over.
const (
	DiesBefore Mode = "before" // the replica dies and makes no call
	DiesAfter  Mode = "after"  // the call is made, but the replica dies before the response
	AnswerLost Mode = "lost"   // the call is made, but the replica gets an error
	Unsent     Mode = "unsent" // the call is not made, and the replica gets an error
	Freezes    Mode = "frozen" // the replica pauses beyond its lease, then makes the call
)

// freezeTime is how long a frozen replica pauses. It is longer than a lease, so that another replica takes over.
const freezeTime = 15 * time.Second

var (
	// ErrLost is the error of a call whose request or response is lost. The caller cannot know which of the two was lost.
	ErrLost = errors.New("connection lost")
	errDead = errors.New("replica is dead")
)

// Point identifies a call: the Nth call with the given Name in a run. N is counted from 1, across all replicas.
type Point struct {
	Name string
	N    int
}

func (p Point) String() string { return fmt.Sprintf("%s-%d", p.Name, p.N) }

// Fault is a fault to inject: its mode, and the call that it affects.
type Fault struct {
	Point

	Mode Mode
}

func (f Fault) String() string { return f.Point.String() + "/" + string(f.Mode) }

// name returns the name of the subtest that runs with the faults of the plan.
func name(plan []Fault) string {
	parts := make([]string, 0, len(plan))
	for _, fault := range plan {
		parts = append(parts, fault.String())
	}

	return strings.Join(parts, "+")
}

// faults counts the calls of all replicas in a run and injects the planned faults. All proxies of the run share it.
type faults struct {
	plan []Fault
	// every, if not 0, is the average number of calls per random fault. random selects the calls and the modes.
	every  int
	random *rand.Rand

	mutex  sync.Mutex
	active bool
	counts map[string]int
	// possible lists all faults that the run could have injected, in the order of the calls.
	possible []Fault
	injected int
}

func newFaults(plan []Fault) *faults { return &faults{plan: plan, counts: map[string]int{}} }

// activate turns later calls into fault points.
func (f *faults) activate() {
	f.mutex.Lock()
	defer f.mutex.Unlock()

	f.active = true
}

// next counts a call to which the given modes apply. It returns the mode that is planned or randomly chosen for this call, or "".
func (f *faults) next(name string, modes ...Mode) Mode {
	f.mutex.Lock()
	defer f.mutex.Unlock()

	if !f.active {
		return ""
	}

	f.counts[name]++
	point := Point{Name: name, N: f.counts[name]}

	if f.every > 0 && len(modes) > 0 && f.random.IntN(f.every) == 0 {
		f.injected++

		return modes[f.random.IntN(len(modes))]
	}

	for _, mode := range modes {
		f.possible = append(f.possible, Fault{Point: point, Mode: mode})
	}

	for _, fault := range f.plan {
		if fault.Point == point && slices.Contains(modes, fault.Mode) {
			f.injected++

			return fault.Mode
		}
	}

	return ""
}
