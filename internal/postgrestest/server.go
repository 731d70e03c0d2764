package postgrestest

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/storage"
)

// standardTemplate is what PostgreSQL copies when an empty database is made.
const standardTemplate = "template1"

// Server is a PostgreSQL for a program that is not a test. It has PostgreSQL's own settings: a commit is on disk.
type Server struct {
	server server
}

// Start finds or starts a server as it does for tests. Stop ends it.
func Start() (*Server, error) {
	started := &Server{}
	started.server.start()

	if started.server.err != nil {
		started.Stop()

		return nil, started.server.err
	}

	return started, nil
}

// Stop ends the server, unless it was there before.
func (s *Server) Stop() {
	if s.server.stop != nil {
		s.server.stop()
	}
}

// Create makes an empty database.
func (s *Server) Create(ctx context.Context, name string) (storage.Config, error) {
	return s.server.create(ctx, name, standardTemplate)
}

// Copy makes a database with the content of another one, which nobody may be connected to.
func (s *Server) Copy(ctx context.Context, name, from string) (storage.Config, error) {
	return s.server.create(ctx, name, from)
}

// Drop removes a database and ends the connections to it.
func (s *Server) Drop(ctx context.Context, name string) error { return s.server.drop(ctx, name) }

// DSN is how lib/pq connects to a database of the server.
func (s *Server) DSN(name string) (string, error) { return withDatabase(s.server.dsn, name) }

func (s *server) create(ctx context.Context, name, template string) (storage.Config, error) {
	if err := s.administer(ctx, `CREATE DATABASE `+name+` TEMPLATE `+template); err != nil {
		return storage.Config{}, fmt.Errorf("creating a database: %w", err)
	}

	config, err := parse(s.dsn)
	config.Name = name

	return config, err
}

func (s *server) drop(ctx context.Context, name string) error {
	if err := s.administer(ctx, `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
		return fmt.Errorf("dropping the database: %w", err)
	}

	return nil
}

// administer runs a statement on a connection of its own.
func (s *server) administer(ctx context.Context, statement string) (err error) {
	admin, err := sqlx.Open("postgres", s.dsn)
	if err != nil {
		return fmt.Errorf("reading %s: %w", dsnVariable, err)
	}

	defer func() { err = errors.Join(err, admin.Close()) }()

	_, err = admin.ExecContext(ctx, statement)

	return err
}
