package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const (
	// patience is how long anything may take that is waited for.
	patience = 10 * time.Minute
	// look is how often the database is asked for what is waited for.
	look = 50 * time.Millisecond
)

// world is a broker with an empty database and a simulated Provisioner.
type world struct {
	broker      server
	provisioner *simulated.Provisioner
	database    storage.Config
	db          *sqlx.DB
	paused      bool
}

// newWorld starts a world. A paused broker takes requests and carries no operation.
func (s *scope) newWorld(ctx context.Context, behaviour simulated.Behaviour, paused bool) (world, error) {
	database, err := s.newDatabase(ctx)
	if err != nil {
		return world{}, err
	}

	provisioner, err := s.startProvisioner(ctx, behaviour)
	if err != nil {
		return world{}, err
	}

	w := world{provisioner: provisioner, database: database, paused: paused}

	if w.db, err = s.open(database.Name); err != nil {
		return world{}, err
	}

	return w, s.startAnew(ctx, &w)
}

// startAnew starts the broker of the world, for the first time or after it has ended.
func (s *scope) startAnew(ctx context.Context, w *world) (err error) {
	w.broker, err = s.startBroker(ctx, brokerOptions{database: w.database, provisioner: w.provisioner, paused: w.paused})

	return err
}

// open connects to the database until the scope ends.
func (s *scope) open(database string) (*sqlx.DB, error) {
	dsn, err := s.postgres.DSN(database)
	if err != nil {
		return nil, err
	}

	db, err := sqlx.Open("postgres", dsn)
	if err != nil {
		return nil, fmt.Errorf("opening a database: %w", err)
	}

	db.SetMaxOpenConns(1)
	s.atEnd(db.Close)

	return db, nil
}

// anyDatabase is one that every PostgreSQL has.
const anyDatabase = "postgres"

// holds waits until a condition on the rows holds.
func holds(ctx context.Context, db *sqlx.DB, condition string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	tick := time.NewTicker(look)
	defer tick.Stop()

	for {
		var now bool

		if err := db.GetContext(ctx, &now, `SELECT `+condition, args...); err != nil && ctx.Err() == nil {
			return fmt.Errorf("looking whether %s: %w", condition, err)
		}

		if now {
			return nil
		}

		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waited in vain until %s: %w", condition, ctx.Err()), tellStates(db))
		case <-tick.C:
		}
	}
}

// until waits until the condition holds.
func until(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	tick := time.NewTicker(look)
	defer tick.Stop()

	for !condition() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}

	return nil
}

// tellStates is an error that says how the operations stand.
func tellStates(db *sqlx.DB) error {
	var states string

	err := db.Get(&states, `SELECT COALESCE(string_agg(line, '; '), 'there are no operations') FROM (
		SELECT count(*) || ' ' || state || ' at ' || step || ': ' || max(problem_message) AS line
		FROM operations GROUP BY state, step) AS lines`)
	if err != nil {
		return err
	}

	return errors.New(states)
}

// The conditions that are waited for, each on so many operations.
const (
	// allSucceeded is asked often while the broker is measured: the operations are counted only once none is under way, which indexes tell.
	allSucceeded = `NOT EXISTS (SELECT FROM operations WHERE state = 'pending')
		AND NOT EXISTS (SELECT FROM operations WHERE state IN ('in progress', 'canceling'))
		AND (SELECT count(*) FROM operations WHERE state = 'succeeded') = $1`
	// allWait is that the runtimes are being made; a worker may be looking how far one of them is. allRest is that none does.
	allWait = `count(*) = $1 FROM operations WHERE state = 'in progress' AND step = 'Check_Runtime'`
	allRest = allWait + ` AND lease_owner = ''`
)

// lastEnd is when the last operation came to its end.
func (w world) lastEnd(ctx context.Context) (time.Time, error) {
	var ended time.Time

	if err := w.db.GetContext(ctx, &ended, `SELECT max(finished_at) FROM operations`); err != nil {
		return time.Time{}, fmt.Errorf("reading the end of the last operation: %w", err)
	}

	return ended, nil
}
