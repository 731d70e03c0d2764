// Package config reads settings from environment variables into a typed struct whose values are the defaults.
package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

// Prefix is what the variables of the services begin with.
const Prefix = "APP_"

// Read sets the fields of the struct, which holds the defaults, from the variables that begin with the prefix. Every error is
// reported at once; none shows a value.
func Read[Config any](prefix string, defaults Config, environment []string) (Config, error) {
	config := defaults

	options := env.Options{Prefix: prefix, Environment: env.ToMap(environment)}
	if err := env.ParseWithOptions(&config, options); err != nil {
		return defaults, fmt.Errorf("reading the configuration: %w", hideValues(err))
	}

	return config, nil
}

// hideValues rewrites the errors of the library, which quote values: a value may be a secret.
func hideValues(err error) error {
	aggregate, ok := err.(env.AggregateError) //nolint:errorlint // the library returns it as it is
	if !ok {
		return err
	}

	lines := make([]string, 0, len(aggregate.Errors))

	for _, each := range aggregate.Errors {
		if wrong, ok := each.(env.ParseError); ok { //nolint:errorlint // the library returns it as it is
			lines = append(lines, fmt.Sprintf("%s: its value is not a %s", wrong.Name, wrong.Type))

			continue
		}

		lines = append(lines, each.Error())
	}

	return fmt.Errorf("%s", strings.Join(lines, "; "))
}

// Database is where a service keeps its rows.
type Database struct {
	Driver   string        `env:"DRIVER"   help:"sqlite or postgres"`
	Path     string        `env:"PATH"     help:"the file of SQLite"`
	User     string        `env:"USER"     help:"user of PostgreSQL"`
	Password secret.String `env:"PASSWORD" help:"password of the user"`
	Host     string        `env:"HOST"     help:"host of PostgreSQL"`
	Port     string        `env:"PORT"     help:"port of PostgreSQL"`
	Name     string        `env:"NAME"     help:"database of PostgreSQL"`
	SSLMode  string        `env:"SSL_MODE" help:"disable, require, verify-ca or verify-full"`
	// SecretKeys has no default: a service without keys refuses to start.
	SecretKeys secret.String `env:"SECRET_KEYS" help:"id:base64,… of 32 bytes each; the first encrypts, all decrypt"`
}

// DefaultDatabase returns the defaults that broker and provisioner have in common.
func DefaultDatabase(driver, name string) Database {
	return Database{
		Driver: driver, Path: name + ".db", User: "postgres", Password: "password", Host: "localhost", Port: "5432",
		Name: name, SSLMode: "disable",
	}
}

// Storage is the configuration of package storage.
func (d Database) Storage() (storage.Config, error) {
	port, err := strconv.Atoi(d.Port)
	if err != nil {
		return storage.Config{}, fmt.Errorf("%sDATABASE_PORT: %q is not a number", Prefix, d.Port)
	}

	return storage.Config{
		Driver: d.Driver, Path: d.Path, User: d.User, Password: d.Password, Host: d.Host, Port: port,
		Name: d.Name, SSLMode: d.SSLMode,
	}, nil
}

// Keys are the keys for what is secret at rest.
func (d Database) Keys() (*secret.Keyring, error) {
	keys, err := secret.ParseKeyring(d.SecretKeys)
	if err != nil {
		return nil, fmt.Errorf("%sDATABASE_SECRET_KEYS: %w", Prefix, err)
	}

	return keys, nil
}

// Engine bounds a replica's share of the work.
type Engine struct {
	Workers          int           `env:"WORKERS"           help:"operations that run at the same time in one replica"`
	LeaseDuration    time.Duration `env:"LEASE_DURATION"    help:"how long a replica that has died keeps its operations"`
	OperationTimeout time.Duration `env:"OPERATION_TIMEOUT" help:"how long an operation may take from its first run"`
}
