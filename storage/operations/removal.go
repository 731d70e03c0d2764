package operations

import (
	"context"
	"slices"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Subject is the state of the object to which operations belong: an instance, a runtime, a binding or whatever else has the key that the
// operations have as their InstanceID.
type Subject int

const (
	// Needed objects, and unknown ones, keep all operations.
	Needed Subject = iota
	// Present objects keep the operations that Removable lists.
	Present
	// Gone objects keep no operations after the retention period.
	Gone
)

// Removal decides which operations a service still reads after their retention period. Retention removes the others.
type Removal struct {
	// Subjects returns the state of each object. Missing keys are Needed.
	Subjects func(ctx context.Context, tx storage.Tx, keys []string) (map[string]Subject, error)
	// Named returns those of the operations that a row of another table names which is still read.
	Named func(ctx context.Context, tx storage.Tx, ids []string) ([]string, error)
	// Removed is called in the transaction that removes operations. emptied are the keys that have no more operations. It may be nil.
	Removed func(ctx context.Context, tx storage.Tx, ids, emptied []string) error

	// Lasting are the kinds that create the object, stop it and continue it. An object keeps these operations, because together they are its
	// state. A successful operation of the kinds Ending has removed the object: older operations belong to an earlier object with the same key.
	Lasting, Ending []string
	// Latest are lists of kinds. For each list, an object keeps the newest operation of these kinds.
	Latest [][]string
}

// Aged is an operation of an object, for Removable.
type Aged struct {
	ID    string        `db:"id"`
	Key   string        `db:"instance_id"`
	Kind  string        `db:"kind"`
	State process.State `db:"state"`
	// Due reports whether the operation has ended, and its retention period, too. Operations that must stay for another reason are not due.
	Due bool `db:"due"`
}

// Removable returns the operations of an object that may be removed. history has all operations of the object, oldest first.
//
// Operations are removed from the oldest to the newest. The first one that must stay keeps all newer ones, except that lasting operations
// keep no others. So readers who go back from the newest operation find no gap, except before operations that decide nothing for them.
func (r Removal) Removable(subject Subject, history []Aged) []Aged {
	running := func(operation Aged) bool { return !operation.State.Terminal() }
	if subject == Needed || slices.ContainsFunc(history, running) {
		return nil
	}

	var removable []Aged

	life, latest := r.life(history), r.latest(history)

	for i, operation := range history {
		if subject == Present && i >= life && (slices.Contains(r.Lasting, operation.Kind) || slices.Contains(latest, i)) {
			continue
		}

		if !operation.Due || subject == Present && i == len(history)-1 {
			break
		}

		removable = append(removable, operation)
	}

	return removable
}

// life returns the index of the first operation of the present object.
func (r Removal) life(history []Aged) int {
	for i, operation := range slices.Backward(history) {
		if operation.State == process.Succeeded && slices.Contains(r.Ending, operation.Kind) {
			return i + 1
		}
	}

	return 0
}

// latest returns the indexes of the newest operations of the kinds Latest.
func (r Removal) latest(history []Aged) []int {
	var latest []int

	for _, kinds := range r.Latest {
		for i, operation := range slices.Backward(history) {
			if slices.Contains(kinds, operation.Kind) {
				latest = append(latest, i)

				break
			}
		}
	}

	return latest
}
