package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/bench/prefill"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const (
	// patience is how long anything may take that is waited for.
	patience = 3 * time.Minute
	// look is how often the database is asked for what is waited for.
	look = 20 * time.Millisecond
)

// filled is a database with many instances.
type filled struct {
	database  storage.Config
	instances []prefill.Copy
}

// fill makes a database with as many instances, whose runtimes are ready or still being made. It has the broker make one instance, and
// copies that.
func (s *scope) fill(ctx context.Context, count int, ready bool) (filled, error) {
	database, err := s.newDatabase(ctx)
	if err != nil {
		return filled{}, err
	}

	if err := s.makeOne(ctx, database, ready); err != nil {
		return filled{}, err
	}

	db, err := s.open(database)
	if err != nil {
		return filled{}, err
	}

	keys, err := secret.ParseKeyring(s.keys)
	if err != nil {
		return filled{}, fmt.Errorf("reading the keys: %w", err)
	}

	instances, err := prefill.Multiply(ctx, db, keys, count)

	return filled{database: database, instances: instances}, err
}

// makeOne has a broker make an instance in the empty database.
func (s *scope) makeOne(ctx context.Context, database storage.Config, ready bool) error {
	return s.scoped(func(s *scope) error {
		provisioner, err := s.startProvisioner(ctx, simulated.Behaviour{Hold: !ready})
		if err != nil {
			return err
		}

		broker, err := s.startBroker(ctx, brokerOptions{database: database, provisioner: provisioner})
		if err != nil {
			return err
		}

		create := creates(broker.url, 1)(0)
		create.Want = http.StatusAccepted

		if _, err := s.once(ctx, create); err != nil {
			return err
		}

		condition := `state = 'in progress' AND step = 'Check_Runtime' AND lease_owner = ''`
		if ready {
			condition = `state = 'succeeded'`
		}

		return s.waitFor(ctx, database, `SELECT count(*) = 1 FROM operations WHERE `+condition)
	})
}

// open connects to the database until the scope ends.
func (s *scope) open(database storage.Config) (*sqlx.DB, error) {
	dsn, err := s.postgres.DSN(database.Name)
	if err != nil {
		return nil, err
	}

	db, err := sqlx.Open("postgres", dsn)
	if err != nil {
		return nil, fmt.Errorf("opening a database: %w", err)
	}

	s.atEnd(db.Close)

	return db, nil
}

// waitFor waits until the query tells true.
func (s *scope) waitFor(ctx context.Context, database storage.Config, query string) error {
	db, err := s.open(database)
	if err != nil {
		return err
	}

	return until(ctx, query, func() (bool, error) {
		var holds bool

		return holds, errors.Join(db.GetContext(ctx, &holds, query))
	})
}

// until waits until the condition holds.
func until(ctx context.Context, what string, condition func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	tick := time.NewTicker(look)
	defer tick.Stop()

	for {
		holds, err := condition()
		if err != nil || holds {
			return err
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}
