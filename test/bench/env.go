package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const (
	// patience bounds each wait.
	patience = 10 * time.Minute
	// pollInterval is the time between two checks of a condition.
	pollInterval = 50 * time.Millisecond
)

// env is a broker with an empty database and a simulated Provisioner.
type env struct {
	broker      server
	provisioner *simulated.Provisioner
	database    storage.Config
	db          *sqlx.DB
	// paused brokers accept requests and run no operations.
	paused bool
}

// newEnv starts an environment.
func (s *scope) newEnv(ctx context.Context, behaviour simulated.Behaviour, paused bool) (env, error) {
	database, err := s.newDatabase(ctx)
	if err != nil {
		return env{}, err
	}

	provisioner, err := s.startProvisioner(ctx, behaviour)
	if err != nil {
		return env{}, err
	}

	e := env{provisioner: provisioner, database: database, paused: paused}

	if e.db, err = s.open(database.Name); err != nil {
		return env{}, err
	}

	return e, s.startBrokerAgain(ctx, &e)
}

// startBrokerAgain starts the broker of the environment, which must not be running. The restarted broker listens on another port.
func (s *scope) startBrokerAgain(ctx context.Context, e *env) (err error) {
	e.broker, err = s.startBroker(ctx, *e)

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
	s.cleanup(db.Close)

	return db, nil
}

// anyDatabase exists on every PostgreSQL server.
const anyDatabase = "postgres"

// waitForRows waits until an SQL condition holds, at most patience. The error lists the states of all operations.
func waitForRows(ctx context.Context, db *sqlx.DB, condition string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	var failed error

	err := waitFor(ctx, condition, func() (holds bool) {
		failed = db.GetContext(ctx, &holds, `SELECT `+condition, args...)

		return holds || failed != nil
	})
	if err := errors.Join(err, failed); err != nil {
		return errors.Join(fmt.Errorf("checking %s: %w", condition, err), operationStates(db))
	}

	return nil
}

// waitFor waits until the condition holds, at most patience.
func waitFor(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	tick := time.NewTicker(pollInterval)
	defer tick.Stop()

	for !condition() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("timed out waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}

	return nil
}

// operationStates returns an error that lists the states of all operations.
func operationStates(db *sqlx.DB) error {
	var states string

	err := db.Get(&states, `SELECT COALESCE(string_agg(line, '; '), 'there are no operations') FROM (
		SELECT count(*) || ' ' || state || ' at ' || step || ': ' || max(problem_message) AS line
		FROM operations GROUP BY state, step) AS lines`)
	if err != nil {
		return err
	}

	return errors.New(states)
}

// Conditions for waitForRows, with the number of operations as argument.
const (
	// allSucceeded is evaluated often during measurements, so it counts operations only when the indexes show that none is unfinished.
	allSucceeded = `NOT EXISTS (SELECT FROM operations WHERE state = 'pending')
		AND NOT EXISTS (SELECT FROM operations WHERE state IN ('in progress', 'canceling'))
		AND (SELECT count(*) FROM operations WHERE state = 'succeeded') = $1`
	// allWait holds when all operations wait for their runtimes; a worker may be polling one. With allRest, no worker has one.
	allWait = `count(*) = $1 FROM operations WHERE state = 'in progress' AND step = 'Check_Runtime'`
	allRest = allWait + ` AND lease_owner = ''`
)

// create creates instances with concurrent requests and returns the responses.
func (e env) create(ctx context.Context, count int) ([]load.Answer, error) {
	generator := load.New(clients)
	defer generator.Close()

	return generator.Count(ctx, count, creates(e.broker.url, manyTenants))
}

// finish waits until all operations have succeeded and returns when the last one ended. There must be count operations.
func (e env) finish(ctx context.Context, count int) (time.Time, error) {
	if err := waitForRows(ctx, e.db, allSucceeded, count); err != nil {
		return time.Time{}, err
	}

	var ended time.Time

	if err := e.db.GetContext(ctx, &ended, `SELECT max(finished_at) FROM operations`); err != nil {
		return time.Time{}, fmt.Errorf("reading the end of the last operation: %w", err)
	}

	return ended, nil
}
