package writecheck

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/google/uuid"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/storage"
)

const (
	// interval limits the cost of frequent probes. For this time after a successful write, Run does not write, and tests only
	// whether the database responds.
	interval = 5 * time.Second
	// contentSize is the size of the written content in bytes, about as much as the rows of a new instance. It takes several database
	// pages, so that a full database cannot store it in the free space of existing pages.
	contentSize = 12 << 10
	// keep is the minimum time for which the last row of a stopped replica is kept.
	keep = time.Hour
)

//go:embed migrations/*.sql
var migrations embed.FS

// Check writes to the database. Its methods may be called from any goroutine.
type Check struct {
	db      *storage.DB
	clock   clock.PassiveClock
	replica string
	// turn contains one token. Only the holder of the token may write or use the fields below.
	turn chan struct{}
	// number is the number of the row that was written last.
	number int64
	// succeeded is when the last write succeeded.
	succeeded time.Time
}

// Open migrates the table, removes old rows of stopped replicas, and returns a Check for this replica.
func Open(ctx context.Context, db *storage.DB, clock clock.PassiveClock) (*Check, error) {
	if err := db.Migrate(ctx, "write_checks", migrations, "migrations"); err != nil {
		return nil, err
	}

	if _, err := storage.Exec(ctx, db.Writer(), `DELETE FROM write_checks WHERE at < ?`, storage.At(clock.Now().Add(-keep))); err != nil {
		return nil, fmt.Errorf("removing old write checks: %w", err)
	}

	check := &Check{db: db, clock: clock, replica: uuid.NewString(), turn: make(chan struct{}, 1)}
	check.turn <- struct{}{}

	return check, nil
}

// Run fails if the database does not respond or does not store a row. Concurrent calls write one after the other. Each call
// replaces the row of this replica, so the table stays small. Because each replica has its own row, replicas do not wait for each
// other.
func (c *Check) Run(ctx context.Context) error {
	select {
	case <-c.turn:
		defer func() { c.turn <- struct{}{} }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for another write check: %w", ctx.Err())
	}

	now := c.clock.Now()
	if now.Sub(c.succeeded) < interval {
		return c.db.Ping(ctx)
	}

	if err := c.write(ctx, now); err != nil {
		return fmt.Errorf("writing to the database: %w", err)
	}

	c.succeeded = now

	return nil
}

// write inserts a row before it removes the previous one, so that a full database cannot reuse the space of the previous row. The
// statements are not in one transaction, because a transaction that is declared as read-write would succeed even in a read-only
// session.
func (c *Check) write(ctx context.Context, now time.Time) error {
	content := make([]byte, contentSize)
	_, _ = rand.Read(content) // never fails; random content cannot be compressed

	c.number++ // do not reuse the number of a failed call, because its commit may have succeeded

	if _, err := storage.Exec(ctx, c.db.Writer(), `INSERT INTO write_checks (replica, number, at, content) VALUES (?, ?, ?, ?)`,
		c.replica, c.number, storage.At(now), base64.StdEncoding.EncodeToString(content)); err != nil {
		return err
	}

	_, err := storage.Exec(ctx, c.db.Writer(), `DELETE FROM write_checks WHERE replica = ? AND number < ?`, c.replica, c.number)

	return err
}
