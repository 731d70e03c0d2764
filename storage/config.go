package storage

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// The values of Config.Driver: the supported databases.
const (
	DriverPostgres = "postgres"
	DriverSQLite   = "sqlite"
)

// idleSetting is the PostgreSQL setting that limits how long an idle transaction keeps its locks. idleLimit is its value in
// milliseconds. The limit ensures that a frozen or disconnected replica does not block the replicas that take over its operations
// after its leases have expired.
const (
	idleSetting = "idle_in_transaction_session_timeout"
	idleLimit   = "5000"
)

// Config configures the connection to a database. Package internal/program/replica reads it from the environment variables of a service.
type Config struct {
	// Driver is DriverPostgres or DriverSQLite.
	Driver string
	// Path is the path of the SQLite file. Its folder must exist. A lock file is created next to the SQLite file.
	Path string
	// User and all fields below apply only to PostgreSQL.
	User     string
	Password secret.String
	// Host is the server's host, or a comma-separated list of hosts. If it is a list, connections use the primary with the newest
	// timeline.
	Host string
	// Port is the port of every server, or a comma-separated list with one port for each host.
	Port string
	Name string
	// SSLMode is an sslmode of libpq, such as disable, require or verify-full.
	SSLMode string
	// SSLRootCert is the path of a file with the CA certificates that the client trusts. If it is empty, the client trusts the
	// system's CA certificates.
	SSLRootCert string
	// Pooler is the host and port of a pooler in transaction mode. If it is empty, all calls use Host and Port. Otherwise, only
	// migrations and LISTEN use Host and Port, because they need a session.
	Pooler string

	// silenceLimit overrides defaultSilenceLimit in tests.
	silenceLimit time.Duration
}

// postgresDSN returns the connection string, including the password, for the server or, if pooled is true, for the pooler. All
// values are quoted, so that parsing the string cannot fail: a parse error would contain the password.
func (c Config) postgresDSN(pooled bool) string {
	quote := func(value string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
	}

	words := []string{
		"user=" + quote(c.User),
		"password=" + quote(c.Password.Reveal()),
		"dbname=" + quote(c.Name),
		"sslmode=" + quote(c.SSLMode),
		"connect_timeout=5",
		"timezone=UTC",
	}
	if c.SSLRootCert != "" {
		words = append(words, "sslrootcert="+quote(c.SSLRootCert))
	}

	if pooled { // a pooler accepts no other settings
		host, port, _ := net.SplitHostPort(c.Pooler)

		// With binary_parameters, lib/pq parses and executes an unnamed statement in one round trip.
		return strings.Join(append(words, "host="+quote(host), "port="+quote(port), "binary_parameters=yes"), " ")
	}

	words = append(words, "host="+quote(c.Host), "port="+quote(c.Port), idleSetting+"="+idleLimit)
	if c.severalHosts() {
		words = append(words, "target_session_attrs=primary")
	}

	return strings.Join(words, " ")
}

// severalHosts reports whether Host is a list.
func (c Config) severalHosts() bool { return strings.Contains(c.Host, ",") }

// sqliteDSN returns the data source name of the SQLite file. Its settings make writers wait for each other for up to 10 s,
// transactions take the write lock when they start, commits return only once they are on disk, and REPLACE run the DELETE triggers
// of the rows that it replaces. The name is a URI, so the path is escaped: SQLite would end an unescaped path at the first # or ?,
// and open a different file without these settings.
func (c Config) sqliteDSN() string {
	settings := url.Values{
		"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "recursive_triggers(1)"},
		"_txlock": {"immediate"},
	}

	return "file:" + (&url.URL{Path: c.Path}).EscapedPath() + "?" + settings.Encode()
}

// String returns a description of the database without the password.
func (c Config) String() string {
	if c.Driver == DriverSQLite {
		return "sqlite " + c.Path
	}

	return fmt.Sprintf("postgres %s@%s/%s", c.User, net.JoinHostPort(c.Host, c.Port), c.Name)
}
