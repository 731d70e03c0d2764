package storage

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lib/pq"
)

// errUnreplicated reports a commit on the primary that no synchronous standby has confirmed, because an operator or the server has
// canceled the wait for the standby. A failover may undo the commit.
var errUnreplicated = errors.New("the server has not waited for a synchronous standby, so a failover may undo the change")

// syncRepRoutine is the PostgreSQL function that waits for synchronous standbys. The server's warning about a canceled wait
// contains this name. Unlike the text of the warning, the name is never translated.
const syncRepRoutine = "SyncRepWaitForLSN"

// reportUnreplicated returns a handler for the server's notices. The handler sets found when a notice reports a commit that no
// standby has confirmed.
func reportUnreplicated(found *atomic.Bool) func(*pq.Error) {
	return func(notice *pq.Error) {
		if notice.Routine == syncRepRoutine {
			found.Store(true)
		}
	}
}

// reads reports whether a query is a SELECT, possibly after Unprepared or after common table expressions that change nothing, and
// therefore commits nothing.
func reads(query string) bool {
	query = strings.TrimSpace(strings.TrimPrefix(query, Unprepared))
	if !strings.HasPrefix(query, "WITH") {
		return strings.HasPrefix(query, "SELECT")
	}

	upper := strings.ToUpper(query)

	return !slices.ContainsFunc([]string{"INSERT", "UPDATE", "DELETE", "MERGE"}, func(word string) bool { return strings.Contains(upper, word) })
}

// checked returns the error of a call. It also returns an error after a commit that no standby has confirmed, and after an answer
// from a former primary. If the server rejected a write as read-only, checked marks the connection as broken, so that the next
// call uses a new connection, possibly to the new primary.
func (c *guardedConnection) checked(err error) error {
	unreplicated := c.unreplicated.Swap(false)

	switch {
	case err == nil && unreplicated:
		return errUnreplicated
	case err == nil && c.outdated():
		return errFormerPrimary
	case err == nil:
		c.primary.noticeAnswer()
	}

	if pqErr, ok := errors.AsType[*pq.Error](err); ok && pqErr.Code == codeReadOnly {
		c.broken.Store(true)
	}

	return err
}
