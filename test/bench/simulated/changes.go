package simulated

import (
	"context"
	"strconv"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
)

// The feed polls as often and returns as many changes per page as the real Provisioner's.
const (
	feedPause = 250 * time.Millisecond
	feedPage  = 500
)

// change sets the state of an operation and adds it to the feed. The caller holds the mutex.
func (r *runtimes) change(id string, state process.State) {
	r.states[id] = state
	r.changes = append(r.changes, orders.Change{
		ID: id, RuntimeID: id, Kind: operation.KindProvisionNoInstall, State: state,
	})
}

// Changes implements graph.Service. A cursor is the number of changes reported so far.
func (r *runtimes) Changes(ctx context.Context, after string, wait time.Duration) (string, []orders.Change, error) {
	r.calls.feeds.Add(1)

	deadline := time.Now().Add(wait)

	for {
		next, changes, err := r.changesAfter(after)
		if err != nil || after == "" || len(changes) > 0 || !time.Now().Before(deadline) {
			return next, changes, err
		}

		select {
		case <-ctx.Done():
			return after, nil, nil
		case <-time.After(feedPause):
		}
	}
}

// changesAfter returns a page of changes and the cursor after it. Several changes of one operation become one, with its present state. An
// empty cursor starts at the end.
func (r *runtimes) changesAfter(after string) (string, []orders.Change, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	if after == "" {
		return strconv.Itoa(len(r.changes)), nil, nil
	}

	reported, err := strconv.Atoi(after)
	if err != nil || reported > len(r.changes) {
		return "", nil, failure.New(failure.Invalid, "after: not a cursor")
	}

	next := min(reported+feedPage, len(r.changes))
	latest := map[string]bool{}

	var changes []orders.Change

	for _, change := range r.changes[reported:next] {
		if !latest[change.ID] {
			latest[change.ID] = true
			change.State = r.states[change.ID]
			changes = append(changes, change)
		}
	}

	r.calls.changes.Add(int64(len(changes)))

	return strconv.Itoa(next), changes, nil
}
