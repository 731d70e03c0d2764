package storage

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/semaphore"
)

// pool is a number of connections that are used in the order in which they are asked for. database/sql gives a free one to anybody of
// those who wait, so that one in a hundred waits four times as long as the others.
type pool struct {
	*sqlx.DB

	turns *semaphore.Weighted
}

func newPool(db *sqlx.DB, connections int) pool {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)

	return pool{DB: db, turns: semaphore.NewWeighted(int64(connections))}
}

// turn waits for a connection to be free and returns what ends its use.
func (p pool) turn(ctx context.Context) (end func(), err error) {
	if err := p.turns.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting for a connection to the database: %w", err)
	}

	return func() { p.turns.Release(1) }, nil
}

// turn is that of the pool. A transaction has its connection.
func turn(ctx context.Context, tx Tx) (end func(), err error) {
	if waited, is := tx.(pool); is {
		return waited.turn(ctx)
	}

	return func() {}, nil
}
