package auditlog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
)

const (
	// A replica whose clock lags, or that was paused during a request, commits a row later than longestDelay after its time. The search
	// for such rows starts every lateEvery, at the time latestDelay before the newest chained row. Each call of Pass examines one
	// page of it. Rows that are even later get no record: probably somebody has inserted them with an old time.
	latestDelay = time.Hour
	lateEvery   = 10 * time.Minute
)

// lateSearch is the search for late rows of a source. It has ended when it reaches the time until, at which the usual search starts.
type lateSearch struct {
	source string
	after  position
	until  string
}

// newLateSearches returns the searches for the sources that have chained rows. The usual search reads the other sources from their
// first row.
func newLateSearches(head chainHead) []lateSearch {
	var searches []lateSearch

	for _, source := range []string{chain.SourceEntry, chain.SourceOperation} {
		if newest := head.newest(source); !newest.IsZero() {
			searches = append(searches, lateSearch{
				source: source, after: position{at: chain.TimeText(newest.Add(-latestDelay))}, until: chain.TimeText(newest.Add(-longestDelay)),
			})
		}
	}

	return searches
}

// addLate examines the next page of the search for late rows, adds records for the rows that it finds, and returns the new head. If
// no search is running, it starts one when it is due.
func (c *Chainer) addLate(ctx context.Context, head chainHead) (chainHead, error) {
	if now := c.Clock.Now(); len(c.late) == 0 && !now.Before(c.lateAt) {
		c.late, c.lateAt = newLateSearches(head), now.Add(lateEvery)
	}

	if len(c.late) == 0 {
		return head, nil
	}

	search := &c.late[0]

	rows, last, more, err := unchained(ctx, c.store.db.Reader(), search.source, search.after, chainPage)
	if err != nil {
		return head, fmt.Errorf("finding late rows without a record: %w", err)
	}

	for batch := range slices.Chunk(rows, chainBatch) {
		batch, err := c.withRestored(ctx, nil, batch)
		if err != nil {
			return head, err
		}

		if head, err = c.append(ctx, head, batch); err != nil {
			return head, err
		}
	}

	if search.after = last; !more || last.at >= search.until {
		c.late = c.late[1:]
	}

	return head, nil
}
