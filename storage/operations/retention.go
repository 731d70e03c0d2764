package operations

import (
	"context"
	"slices"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Subject is the state of the object to which operations belong, such as an instance, a runtime or a binding. The operations of an
// object have the object's key as their InstanceID.
type Subject int

const (
	// Needed means that all operations of the object must be kept. It is the zero value, and therefore also applies to unknown
	// objects.
	Needed Subject = iota
	// Present means that the object exists. Its newest operation is kept, and so are the operations that Removal.Lasting and
	// Removal.Latest describe.
	Present
	// Gone means that the object no longer exists. No operations are kept after their retention period.
	Gone
)

// Removal determines which operations a service still needs after their retention period. Package auditlog removes the others.
type Removal struct {
	// Subjects returns the states of the objects with the given keys. Objects that are missing from the result are Needed.
	Subjects func(ctx context.Context, tx storage.Tx, keys []string) (map[string]Subject, error)
	// Named returns the IDs of the given operations that must stay because rows that are still needed refer to them.
	Named func(ctx context.Context, tx storage.Tx, ids []string) ([]string, error)
	// Removed is called in the transaction that deletes the operations with the given IDs, unless it is nil. emptied lists the keys
	// that have no operations left.
	Removed func(ctx context.Context, tx storage.Tx, ids, emptied []string) error

	// Lasting lists the kinds that create, suspend and resume the object. A present object keeps these operations, because its state
	// follows from them. Ending lists the kinds that remove the object. Operations that precede a successful removal belong to an
	// earlier object with the same key.
	Lasting, Ending []string
	// Latest contains lists of kinds. For each list, a present object keeps the newest operation whose kind is in the list.
	Latest [][]string
}

// Aged is an operation of an object, for Removable.
type Aged struct {
	ID    string        `db:"id"`
	Key   string        `db:"instance_id"`
	Kind  string        `db:"kind"`
	State process.State `db:"state"`
	// Due is true if the operation has ended and its retention period is over. It is false if the operation must stay for another
	// reason.
	Due bool `db:"due"`
}

// Removable returns the operations of an object that may be removed. history contains all operations of the object, oldest first.
// While any of them is unfinished, none may be removed.
//
// Operations are removed from the oldest to the newest, until one of them must stay for a reason other than Lasting or Latest.
// All newer operations then stay as well. Therefore, operations are missing only at the beginning of the remaining history, and
// directly after operations that stay because of Lasting or Latest.
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

// life returns the index of the first operation of the present object, which follows the last successful operation of a kind in
// Ending.
func (r Removal) life(history []Aged) int {
	for i, operation := range slices.Backward(history) {
		if operation.State == process.Succeeded && slices.Contains(r.Ending, operation.Kind) {
			return i + 1
		}
	}

	return 0
}

// latest returns, for each list in Latest, the index of the newest operation whose kind is in the list.
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
