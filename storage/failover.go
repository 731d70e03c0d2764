package storage

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/lib/pq"
)

// errStandby tells that the server follows another one: what it has is old, and it takes nothing.
var errStandby = errors.New("the server is a standby: the one that writes has to be found")

// codeReadOnly is that of a write where the server, or the session, only reads.
const codeReadOnly = "25006"

// writes fails for a server that is a standby. While another one takes over from the one that writes, its name may lead to either.
func writes(ctx context.Context, opened driver.QueryerContext) error {
	rows, err := opened.QueryContext(ctx, `SELECT pg_is_in_recovery()`, nil)
	if err != nil {
		return fmt.Errorf("asking whether the server writes: %w", err)
	}

	follows := make([]driver.Value, 1)
	if err := errors.Join(rows.Next(follows), rows.Close()); err != nil {
		return fmt.Errorf("reading whether the server writes: %w", err)
	}

	if follows[0] == true {
		return errStandby
	}

	return nil
}

// checked gives up a connection that only reads: the next one may write again.
func (c *guardedConnection) checked(err error) error {
	if known, ok := errors.AsType[*pq.Error](err); ok && known.Code == codeReadOnly {
		c.gaveUp.Store(true)
	}

	return err
}
