package provisionerwait

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
)

// tenant holds the polls of one tenant. The mutex of the Poller guards all types in this file.
type tenant struct {
	// polls contains the running and expected polls, keyed by operation ID.
	polls map[string]*poll
	// last is the slot that was reserved last, or nil.
	last *slot
}

// poll is the running or the expected poll of one operation.
type poll struct {
	// due is when the operation is expected to poll, or when it polled unexpectedly. From lead before due, a request may include
	// the operation.
	due  time.Time
	lead time.Duration
	// slot is the slot for which the operation waits, or nil.
	slot *slot
	// batch is the latest request that includes the operation, or nil. If the operation does not fetch its result, later requests
	// omit the operation until it polls again, because another replica may run it.
	batch *batch
}

// next returns when the operation polls next: at its due time, or at the time of its slot if that is later.
func (p *poll) next() time.Time {
	if p.slot != nil && p.slot.at.After(p.due) {
		return p.slot.at
	}

	return p.due
}

// slot is the permission to send one request.
type slot struct {
	// at is when the request may be sent, or was sent.
	at time.Time
	// polls is the number of polls that wait for the request.
	polls int
	used  bool
}

// reserve returns a slot for another poll: the last slot, or a new one if the last slot was used or is full. Slots that are not
// used remain valid.
func (t *tenant) reserve(limiter *rate.Limiter, limit int, now time.Time) *slot {
	if t.last != nil && !t.last.used && t.last.polls < limit {
		t.last.polls++

		return t.last
	}

	at := now.Add(limiter.ReserveN(now, 1).DelayFrom(now))

	// The spacing gives several operations time to join a request. If every request has only one operation, the spacing would
	// only add delay.
	if t.last != nil && limit > 1 {
		if earliest := t.last.at.Add(spacing); at.Before(earliest) {
			at = earliest
		}
	}

	t.last = &slot{at: at, polls: 1}

	return t.last
}

// choose returns the operations to include in a request: the operation that sends it, then the operations that wait for the same
// slot, then the operations that are due next.
func (t *tenant) choose(sender string, limit int, now time.Time) []string {
	type candidate struct {
		id string
		// rank is 0 for a poll that waits for the sender's slot, and 1 for the others.
		rank int
		due  time.Time
	}

	own := t.polls[sender].slot

	var others []candidate

	for id, other := range t.polls {
		switch {
		case id == sender, other.batch != nil && !other.batch.abandoned:
		case other.slot == own:
			others = append(others, candidate{id: id, due: other.due})
		case other.due.Sub(now) <= other.lead:
			others = append(others, candidate{id: id, rank: 1, due: other.due})
		}
	}

	slices.SortFunc(others, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.due.Compare(b.due), cmp.Compare(a.id, b.id))
	})

	chosen := []string{sender}
	for _, other := range others[:min(len(others), limit-1)] {
		chosen = append(chosen, other.id)
	}

	return chosen
}

// batch is a request for the states of several operations.
type batch struct {
	cancel context.CancelFunc
	// done is closed when the request has ended.
	done chan struct{}
	// waiting is the number of polls that wait for the request.
	waiting int
	// abandoned reports that no poll waits for the request any longer. The request was then canceled, and its results are useless.
	abandoned bool
	// ended is when the request ended, or zero.
	ended time.Time
	// results contains the result of each operation once the request has ended.
	results map[string]provisionerclient.OperationResult
}

// usable reports whether a poll can take its result from the batch, or wait for the batch to end.
func (b *batch) usable(now time.Time, maxAge time.Duration) bool {
	return !b.abandoned && (b.ended.IsZero() || now.Sub(b.ended) <= maxAge)
}

// end stores the results. It reports whether the Provisioner has rejected the batch because it contains too many operations.
func (b *batch) end(results map[string]provisionerclient.OperationResult) (rejected bool) {
	b.results, b.ended = results, time.Now()
	close(b.done)

	for _, result := range results {
		if errors.Is(result.Err, provisionerclient.ErrTooManyOperations) {
			return true
		}
	}

	return false
}

// leave records that a poll no longer waits for the batch. When the last poll leaves an unfinished request, leave cancels the
// request.
func (b *batch) leave() {
	b.waiting--

	if b.waiting == 0 && b.ended.IsZero() {
		b.abandoned = true
		b.cancel()
	}
}
