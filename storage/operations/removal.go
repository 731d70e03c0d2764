package operations

import (
	"context"
	"slices"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Subject is the state of the object to which operations belong, such as an instance, a runtime or a binding. The key of the object is the
// InstanceID of its operations.
type Subject int

const (
	// Needed objects, and unknown ones, keep all operations.
	Needed Subject = iota
	// Present objects keep the operations that Removal.Lasting and Removal.Latest describe, and their newest operation.
	Present
	// Gone objects keep no operations after the retention period.
	Gone
)

// Removal decides which operations a service still needs after their retention period. Package auditlog removes the others.
type Removal struct {
	// Subjects returns the state of each object. Missing keys are Needed.
	Subjects func(ctx context.Context, tx storage.Tx, keys []string) (map[string]Subject, error)
	// Named returns the operations that must stay because a row that is still needed refers to them.
	Named func(ctx context.Context, tx storage.Tx, ids []string) ([]string, error)
	// Removed is called in the transaction that removes operations. emptied are the keys that have no more operations. It may be nil.
	Removed func(ctx context.Context, tx storage.Tx, ids, emptied []string) error

	// Lasting are the kinds that create, suspend and resume the object. A present object keeps these operations, because its state follows
	// from them. A successful operation of the kinds Ending has removed the object: older operations belong to an earlier object with the
	// same key.
	Lasting, Ending []string
	// Latest are lists of kinds. For each list, a present object keeps the newest operation of these kinds.
	Latest [][]string
}

// Aged is an operation of an object, for Removable.
type Aged struct {
	ID    string        `db:"id"`
	Key   string        `db:"instance_id"`
	Kind  string        `db:"kind"`
	State process.State `db:"state"`
	// Due is true if the operation and its retention period have ended. Operations that must stay for another reason are not due.
	Due bool `db:"due"`
}

// Removable returns the operations of an object that may be removed. history contains all operations of the object, oldest first. While one
// of them is unfinished, none may be removed.
//
// Operations are removed from the oldest to the newest. The first one that must stay also keeps all newer ones, unless it stays only because
// of Lasting or Latest. Readers who go back from the newest operation therefore find no gaps, except before such operations.
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
