package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/storage"
)

// Create makes an empty database.
func (s *Server) Create(ctx context.Context, name string) (storage.Config, error) {
	return create(ctx, s.dsn, name)
}

// Drop removes a database and ends the connections to it.
func (s *Server) Drop(ctx context.Context, name string) error { return drop(ctx, s.dsn, name) }

// DSN is how lib/pq connects to a database of the server.
func (s *Server) DSN(name string) (string, error) {
	address, err := url.Parse(s.dsn)
	if err != nil {
		return "", fmt.Errorf("reading the address of the server: %w", err)
	}

	address.Path = "/" + name

	return address.String(), nil
}

// newDatabase makes an empty database for the test, and drops it at the end.
func newDatabase(tb testing.TB, dsn string) storage.Config {
	tb.Helper()

	name := "test_" + uuid.NewString()[:8]

	config, err := create(tb.Context(), dsn, name)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() { // the test's context has ended
		if err := drop(context.Background(), dsn, name); err != nil {
			tb.Error(err)
		}
	})

	return config
}

func create(ctx context.Context, dsn, name string) (storage.Config, error) {
	if err := administer(ctx, dsn, `CREATE DATABASE `+name); err != nil {
		return storage.Config{}, fmt.Errorf("creating a database: %w", err)
	}

	config, err := parse(dsn)
	config.Name = name

	return config, err
}

func drop(ctx context.Context, dsn, name string) error {
	if err := administer(ctx, dsn, `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
		return fmt.Errorf("dropping the database: %w", err)
	}

	return nil
}

// administer runs a statement on a connection of its own.
func administer(ctx context.Context, dsn, statement string) (err error) {
	admin, err := sqlx.Open("postgres", dsn)
	if err != nil {
		return fmt.Errorf("reading %s: %w", dsnVariable, err)
	}

	defer func() { err = errors.Join(err, admin.Close()) }()

	_, err = admin.ExecContext(ctx, statement)

	return err
}
