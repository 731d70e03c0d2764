package storage

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/lib/pq"
)

// errUnreplicated reports a commit on the primary that no synchronous standby has confirmed, because an operator or the server has
// canceled the wait. A failover may undo it.
var errUnreplicated = errors.New("the server has not waited for a synchronous standby, so a failover may undo the change")

// syncRepRoutine is the PostgreSQL function that waits for synchronous standbys. The warning about a canceled wait names it.
// Unlike the text of the warning, the name is not translated.
const syncRepRoutine = "SyncRepWaitForLSN"

// reportUnreplicated returns a handler for the server's notices. It sets found when a notice reports a commit that is not
// replicated.
func reportUnreplicated(found *atomic.Bool) func(*pq.Error) {
	return func(notice *pq.Error) {
		if notice.Routine == syncRepRoutine {
			found.Store(true)
		}
	}
}

// reads reports whether a query is a SELECT, which commits nothing.
func reads(query string) bool { return strings.HasPrefix(strings.TrimSpace(query), "SELECT") }

// checked returns the error of a call. It treats a commit that is not replicated, and an answer of a former primary, as errors. checked
// marks the connection as broken if the server rejected a write as read-only, because the next connection may reach the new primary.
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
