// Package config reads settings from environment variables into a typed struct whose values are the defaults.
package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Prefix is what the variables of the services begin with.
const Prefix = "APP_"

// Read sets the fields of the struct, which holds the defaults, from the variables that begin with the prefix. Every error is
// reported at once, under the name of its variable; none shows a value.
func Read[Config any](prefix string, defaults Config, environment []string) (Config, error) {
	variables := env.ToMap(environment)
	config := defaults

	err := env.ParseWithOptions(&config, env.Options{Prefix: prefix, Environment: variables})
	if err == nil {
		return config, nil
	}

	var lines []string

	// The library tells which field is wrong, and not which variable: that shows when each is read alone.
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if strings.HasPrefix(name, prefix) {
			alone := defaults
			lines = append(lines, wrong(name, env.ParseWithOptions(&alone, env.Options{
				Prefix: prefix, Environment: map[string]string{name: variables[name]},
			}))...)
		}
	}

	if len(lines) == 0 { // a fault of the struct and of no variable
		return defaults, fmt.Errorf("reading the configuration: %w", err)
	}

	return defaults, fmt.Errorf("reading the configuration: %s", strings.Join(lines, "; "))
}

// form says how a value of the type is written, where that cannot be guessed.
func form(kind reflect.Type) string {
	switch kind {
	case reflect.TypeFor[time.Duration]():
		return ": write it like 90s or 1h30m"
	case reflect.TypeFor[map[string]time.Duration]():
		return ": write it like key:336h,key:90m"
	case reflect.TypeFor[map[string]string]():
		return ": write it like key:value,key:value"
	default:
		return ""
	}
}

// wrong rewrites the errors of the library, which quote values: a value may be a secret.
func wrong(name string, err error) []string {
	aggregate, _ := errors.AsType[env.AggregateError](err)
	lines := make([]string, 0, len(aggregate.Errors))

	for _, each := range aggregate.Errors {
		if problem, ok := errors.AsType[env.ParseError](each); ok {
			lines = append(lines, fmt.Sprintf("%s: its value is not a %s%s", name, problem.Type, form(problem.Type)))
		}
	}

	return lines
}

// Database is where a service keeps its rows.
type Database struct {
	Driver      string        `env:"DRIVER"        help:"sqlite or postgres"`
	Path        string        `env:"PATH"          help:"the file of SQLite"`
	User        string        `env:"USER"          help:"user of PostgreSQL"`
	Password    secret.String `env:"PASSWORD"      help:"password of the user; password unless it is set"`
	Host        string        `env:"HOST"          help:"host of PostgreSQL"`
	Port        string        `env:"PORT"          help:"port of PostgreSQL"`
	Name        string        `env:"NAME"          help:"database of PostgreSQL"`
	SSLMode     string        `env:"SSL_MODE"      help:"disable, require, verify-ca or verify-full"`
	SSLRootCert string        `env:"SSL_ROOT_CERT" help:"file with the authorities of PostgreSQL's certificate; empty for those of the system"`
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
	if d.Driver != storage.DriverSQLite && d.Driver != storage.DriverPostgres {
		return storage.Config{}, fmt.Errorf("%sDATABASE_DRIVER: %q is not known, use %s or %s",
			Prefix, d.Driver, storage.DriverSQLite, storage.DriverPostgres)
	}

	port, err := strconv.Atoi(d.Port)
	if err != nil {
		return storage.Config{}, fmt.Errorf("%sDATABASE_PORT: %q is not a number", Prefix, d.Port)
	}

	return storage.Config{
		Driver: d.Driver, Path: d.Path, User: d.User, Password: d.Password, Host: d.Host, Port: port,
		Name: d.Name, SSLMode: d.SSLMode, SSLRootCert: d.SSLRootCert,
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
	Workers          int            `env:"WORKERS"           help:"operations that run at the same time in one replica; with 0 it only takes requests"`
	WorkersPerKind   map[string]int `env:"WORKERS_PER_KIND"  help:"how many of a kind of operation run at the same time in one replica, as kind:number, comma-separated; half of the workers is always kept for the kinds that run less than their share"`
	LeaseDuration    time.Duration  `env:"LEASE_DURATION"    help:"how long a replica that has died keeps its operations"`
	OperationTimeout time.Duration  `env:"OPERATION_TIMEOUT" help:"how long an operation may take from its first run"`
	PendingTimeout   time.Duration  `env:"PENDING_TIMEOUT"   help:"how long an operation may wait for its turn"`
	// TimelineRetention is about what is kept when the work is done.
	TimelineRetention time.Duration `env:"TIMELINE_RETENTION" help:"how long timelines are kept after the end of their operations; 0 keeps them for ever"`
}

const (
	defaultOperationTimeout = 24 * time.Hour
	// defaultTimelineRetention is a month of 30 days.
	defaultTimelineRetention = 720 * time.Hour
)

// DefaultEngine returns the defaults, of which most are the engine's own.
func DefaultEngine() Engine {
	engine := process.DefaultConfig()

	return Engine{
		Workers: engine.Workers, LeaseDuration: engine.Lease, OperationTimeout: defaultOperationTimeout,
		PendingTimeout: engine.PendingLimit, TimelineRetention: defaultTimelineRetention,
	}
}

// Process is the configuration as the engine takes it.
func (e Engine) Process() process.Config {
	engine := process.DefaultConfig()
	engine.Workers, engine.Lease = e.Workers, e.LeaseDuration
	engine.PendingLimit, engine.Limits = e.PendingTimeout, e.WorkersPerKind

	return engine
}

// Check finds values that no engine runs with.
func (e Engine) Check() error {
	var wrong []error

	if e.Workers < 0 {
		wrong = append(wrong, fmt.Errorf("%sWORKERS: it cannot be negative", Prefix))
	}

	if e.LeaseDuration <= 0 {
		wrong = append(wrong, fmt.Errorf("%sLEASE_DURATION: it has to be longer than nothing", Prefix))
	}

	if e.OperationTimeout <= 0 {
		wrong = append(wrong, fmt.Errorf("%sOPERATION_TIMEOUT: it has to be longer than nothing", Prefix))
	}

	if e.PendingTimeout <= 0 {
		wrong = append(wrong, fmt.Errorf("%sPENDING_TIMEOUT: it has to be longer than nothing", Prefix))
	}

	if e.TimelineRetention < 0 {
		wrong = append(wrong, fmt.Errorf("%sTIMELINE_RETENTION: it cannot be less than nothing, 0 keeps timelines for ever", Prefix))
	}

	return errors.Join(wrong...)
}
