package storage

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// The databases that DB speaks.
const (
	DriverPostgres = "postgres"
	DriverSQLite   = "sqlite"
)

// idleInTransaction is for how long the server keeps the locks of a transaction in which nothing happens: a replica that was frozen or
// cut off must not hold up the others, who take over after a lease.
const idleInTransaction = 5 * time.Second

// Config says which database to open.
type Config struct {
	// Driver is DriverPostgres or DriverSQLite.
	Driver string
	// Path is the file of SQLite.
	Path string
	// The rest is for PostgreSQL.
	User     string
	Password secret.String
	Host     string
	Port     int
	Name     string
	SSLMode  string
	// SSLRootCert is the file of the authorities whom the server's certificate has to come from; empty for those of the system.
	SSLRootCert string
}

// postgresDSN returns the connection string, password included. It is made of quoted words, which can always be read: an error
// about it would show it.
func (c Config) postgresDSN() string {
	quote := func(value string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
	}

	words := []string{
		"user=" + quote(c.User),
		"password=" + quote(c.Password.Reveal()),
		"host=" + quote(c.Host),
		"port=" + strconv.Itoa(c.Port),
		"dbname=" + quote(c.Name),
		"sslmode=" + quote(c.SSLMode),
		"connect_timeout=5",
		"timezone=UTC",
		"idle_in_transaction_session_timeout=" + strconv.FormatInt(idleInTransaction.Milliseconds(), 10),
	}
	if c.SSLRootCert != "" {
		words = append(words, "sslrootcert="+quote(c.SSLRootCert))
	}

	return strings.Join(words, " ")
}

// sqliteDSN returns the file with its settings: writers wait for each other, a commit is on disk before it is reported.
func (c Config) sqliteDSN() string {
	settings := url.Values{
		"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"},
		"_txlock": {"immediate"},
	}

	return "file:" + c.Path + "?" + settings.Encode()
}

// String names the database without its password.
func (c Config) String() string {
	if c.Driver == DriverSQLite {
		return "sqlite " + c.Path
	}

	return fmt.Sprintf("postgres %s@%s/%s", c.User, net.JoinHostPort(c.Host, strconv.Itoa(c.Port)), c.Name)
}
