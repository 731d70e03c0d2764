package replica

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit/delivery"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Config contains the settings that both services share. The configuration of each service embeds Config, so each shared variable
// is declared only once.
type Config struct {
	Address       string        `env:"ADDRESS"        help:"host and port of the API"`
	StatusAddress string        `env:"STATUS_ADDRESS" help:"host and port of the endpoints for health, readiness and metrics"`
	ShutdownDelay time.Duration `env:"SHUTDOWN_DELAY" help:"how long a replica continues to serve requests after SIGTERM, which gives load balancers time to notice the shutdown"`

	Log      logging.Config `envPrefix:""`
	Database Database       `envPrefix:"DATABASE_"`
	Engine   Engine         `envPrefix:""`
	Tracing  tracing.Config `envPrefix:""`

	AuthBasicUsers secret.String `env:"AUTH_BASIC_USERS" help:"users of HTTP Basic authentication as user:password[:role+role],…; roles are osb, viewer, operator and admin; required if other machines can reach the service, unless another kind of authentication is configured"`
	Access         auth.Config   `envPrefix:""`

	AuditDelivery  delivery.Config `envPrefix:"AUDIT_DELIVERY_"`
	AuditArchive   string          `env:"AUDIT_ARCHIVE_DIR"     help:"folder in which entries of the audit log are archived before they are removed; all replicas must share this folder; without a folder, entries are removed without being archived"`
	AuditRetention time.Duration   `env:"AUDIT_RETENTION"       help:"how long new entries of the audit log and new operations are kept; 0 keeps them forever. Operations that a service still needs are kept longer"`
}

const (
	// defaultShutdownDelay gives a load balancer that probes every second enough time to notice the shutdown.
	defaultShutdownDelay = 2 * time.Second
	// defaultAuditRetention is 400 days: a yearly audit can cover the whole previous year even if it starts a month late.
	defaultAuditRetention   = 400 * 24 * time.Hour
	defaultOperationTimeout = 24 * time.Hour
	// defaultPassword suits only a database that no other machine can reach.
	defaultPassword secret.String = "password"
	// defaultTimelineRetention is 30 days.
	defaultTimelineRetention = 720 * time.Hour
)

// DefaultConfig returns the defaults of the named service. The name is also the default name of the service's database, and
// driver is the default of DATABASE_DRIVER. The addresses have no defaults here, because each service sets different addresses.
func DefaultConfig(name, driver string) Config {
	engine := process.DefaultConfig()

	return Config{
		Log: logging.DefaultConfig(), ShutdownDelay: defaultShutdownDelay,
		Database: Database{
			Driver: driver, Path: name + ".db", User: "postgres", Password: defaultPassword, Host: "localhost", Port: "5432",
			Name: name, SSLMode: "disable",
		},
		Engine: Engine{
			Workers: engine.Workers, LeaseDuration: engine.Lease, OperationTimeout: defaultOperationTimeout,
			PendingTimeout: engine.PendingLimit, TimelineRetention: defaultTimelineRetention,
		},
		Tracing: tracing.DefaultConfig(), Access: auth.Default(), AuditRetention: defaultAuditRetention,
		AuditDelivery: delivery.DefaultConfig(),
	}
}

// Check validates the settings that no other package checks. The error names all invalid variables.
func (c Config) Check() error {
	return errors.Join(
		c.Engine.check(),
		failure.Unless(c.ShutdownDelay >= 0, "%sSHUTDOWN_DELAY: must not be negative", program.Prefix),
		failure.Unless(c.AuditRetention >= 0, "%sAUDIT_RETENTION: must not be negative; 0 keeps entries and operations forever", program.Prefix),
		failure.While(c.AuditDelivery.Check(), "%sAUDIT_DELIVERY_URL", program.Prefix),
	)
}

// Warnings returns a warning for each valid setting that is unsafe if other machines can reach the service or its database. The
// warnings name the variables but do not quote their values.
func (c Config) Warnings() []string {
	database, remoteDatabase := c.Database, c.Database.remote()
	reachable := auth.BeyondLoopback(c.Address)

	var warnings []string

	if database.Driver == storage.DriverPostgres && database.Password == defaultPassword && (reachable || remoteDatabase) {
		warnings = append(warnings, program.Prefix+"DATABASE_PASSWORD: the default password is publicly known: set a different one in "+
			"PostgreSQL and in this variable")
	}

	if remoteDatabase && !slices.Contains([]string{"require", "verify-ca", "verify-full"}, database.SSLMode) {
		warnings = append(warnings, program.Prefix+"DATABASE_SSL_MODE: the connection to PostgreSQL on another machine might not be encrypted: use verify-full")
	}

	if reachable && c.Access.TLS.CertFile == "" && (c.AuthBasicUsers != "" || c.Access.UsersFile != "") {
		warnings = append(warnings, program.Prefix+"TLS_CERT_FILE: without a certificate, the passwords of "+
			program.Prefix+"AUTH_BASIC_USERS and "+program.Prefix+"AUTH_BASIC_USERS_FILE cross the network unencrypted, unless a proxy in front of the service terminates TLS")
	}

	return warnings
}

// Database contains the address and credentials of a service's database. Path is for SQLite; the fields from User to Pooler are
// for PostgreSQL.
type Database struct {
	Driver      string        `env:"DRIVER"        help:"database driver: sqlite or postgres"`
	Path        string        `env:"PATH"          help:"path of the SQLite file"`
	User        string        `env:"USER"          help:"PostgreSQL user"`
	Password    secret.String `env:"PASSWORD"      help:"password of the PostgreSQL user; the default is password"`
	Host        string        `env:"HOST"          help:"PostgreSQL host, or a comma-separated list of hosts: connections use the primary"`
	Port        string        `env:"PORT"          help:"PostgreSQL port, or a comma-separated list with one port for each host"`
	Name        string        `env:"NAME"          help:"name of the PostgreSQL database"`
	SSLMode     string        `env:"SSL_MODE"      help:"TLS mode of PostgreSQL connections: disable, require, verify-ca or verify-full"`
	SSLRootCert string        `env:"SSL_ROOT_CERT" help:"file with the CA certificates that verify the PostgreSQL server's certificate; if empty, the system's CA certificates are used"`
	Pooler      string        `env:"POOLER"        help:"host:port of a connection pooler in transaction mode, such as PgBouncer; migrations and notifications between replicas still use the PostgreSQL host"`
	// SecretKeys has no default: a default key would be public. A service without keys does not start.
	SecretKeys secret.String `env:"SECRET_KEYS" help:"keys that encrypt secrets in the database, as id:base64,…; each has 32 bytes; the first key encrypts, and all keys decrypt"`
}

// Storage converts the settings to the settings of package storage. It returns an error if the driver is unknown, or a port or
// the pooler is invalid.
func (d Database) Storage() (storage.Config, error) {
	if d.Driver != storage.DriverSQLite && d.Driver != storage.DriverPostgres {
		return storage.Config{}, fmt.Errorf("%sDATABASE_DRIVER: %q is unknown: use %s or %s",
			program.Prefix, d.Driver, storage.DriverSQLite, storage.DriverPostgres)
	}

	if err := d.checkPorts(); err != nil {
		return storage.Config{}, err
	}

	if host, port, err := net.SplitHostPort(d.Pooler); d.Pooler != "" && (err != nil || host == "" || port == "") {
		return storage.Config{}, fmt.Errorf("%sDATABASE_POOLER: %q is not a host and port, such as localhost:6432", program.Prefix, d.Pooler)
	}

	return storage.Config{
		Driver: d.Driver, Path: d.Path, User: d.User, Password: d.Password, Host: d.Host, Port: d.Port,
		Name: d.Name, SSLMode: d.SSLMode, SSLRootCert: d.SSLRootCert, Pooler: d.Pooler,
	}, nil
}

// remote reports whether the database is a PostgreSQL server that may run on another machine. A host that starts with a slash is
// the folder of a Unix socket.
func (d Database) remote() bool {
	if d.Driver != storage.DriverPostgres {
		return false
	}

	if d.Pooler != "" && auth.BeyondLoopback(d.Pooler) {
		return true
	}

	port, _, _ := strings.Cut(d.Port, ",")

	return slices.ContainsFunc(strings.Split(d.Host, ","), func(host string) bool {
		return !strings.HasPrefix(host, "/") && auth.BeyondLoopback(net.JoinHostPort(host, port))
	})
}

// checkPorts returns an error unless Port is one port, or a list with one port for each host.
func (d Database) checkPorts() error {
	ports, hosts := strings.Split(d.Port, ","), strings.Split(d.Host, ",")

	for _, port := range ports {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("%sDATABASE_PORT: %q is not a port number", program.Prefix, port)
		}
	}

	if len(ports) > 1 && len(ports) != len(hosts) {
		return fmt.Errorf("%sDATABASE_PORT: %d ports for %d hosts: set one port, or one for each host",
			program.Prefix, len(ports), len(hosts))
	}

	return nil
}

// Keys parses SecretKeys. The error names the variable but does not quote any key.
func (d Database) Keys() (*secret.Keyring, error) {
	keys, err := secret.ParseKeyring(d.SecretKeys)
	if err != nil {
		return nil, fmt.Errorf("%sDATABASE_SECRET_KEYS: %w", program.Prefix, err)
	}

	return keys, nil
}

// Engine contains the limits of the engine. Worker limits apply to each replica, and timeouts apply to each operation.
type Engine struct {
	Workers           int            `env:"WORKERS"            help:"maximum number of operations that a replica runs at the same time; with 0, the replica only serves requests"`
	WorkersPerKind    map[string]int `env:"WORKERS_PER_KIND"   help:"maximum number of operations of one kind that a replica runs at the same time, as kind:number,…; half of the workers are reserved for kinds that use less than their share"`
	LeaseDuration     time.Duration  `env:"LEASE_DURATION"     help:"time after which other replicas take over the operations of a replica that has stopped unexpectedly"`
	OperationTimeout  time.Duration  `env:"OPERATION_TIMEOUT"  help:"maximum duration of an operation, measured from its first attempt"`
	PendingTimeout    time.Duration  `env:"PENDING_TIMEOUT"    help:"maximum time for which an operation may be pending"`
	TimelineRetention time.Duration  `env:"TIMELINE_RETENTION" help:"how long timelines are kept after the end of their operations; 0 keeps them forever"`
}

// Process converts the settings to the configuration of package process. The result does not include OperationTimeout and
// TimelineRetention, which the services read from Engine directly.
func (e Engine) Process() process.Config {
	engine := process.DefaultConfig()
	engine.Host, _ = os.Hostname() // an empty name only makes the replica harder to find
	engine.Workers, engine.Lease = e.Workers, e.LeaseDuration
	engine.PendingLimit, engine.Limits = e.PendingTimeout, e.WorkersPerKind

	return engine
}

// check returns an error that names all invalid settings.
func (e Engine) check() error {
	return errors.Join(
		failure.Unless(e.Workers >= 0, "%sWORKERS: must not be negative", program.Prefix),
		failure.Unless(e.LeaseDuration > 0, "%sLEASE_DURATION: must be positive", program.Prefix),
		failure.Unless(e.OperationTimeout > 0, "%sOPERATION_TIMEOUT: must be positive", program.Prefix),
		failure.Unless(e.PendingTimeout > 0, "%sPENDING_TIMEOUT: must be positive", program.Prefix),
		failure.Unless(e.TimelineRetention >= 0, "%sTIMELINE_RETENTION: must not be negative; 0 keeps timelines forever", program.Prefix),
	)
}
