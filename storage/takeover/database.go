package takeover

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// applicationName identifies this program's session in the database of Kyma Provisioner or KEB.
	applicationName = "environment-broker-adopt"
	// callTimeout limits one query.
	callTimeout = 30 * time.Second
	// Page is the number of rows that callers read with one query.
	Page = 500
	// maxNamed is the maximum number of objects that an error lists by name.
	maxNamed = 5
)

// Program describes a program whose database is read: Kyma Provisioner or KEB.
type Program struct {
	// Name is the name of the program in messages.
	Name string
	// Version is the oldest supported version of its schema, as stored in its schema_migrations table.
	Version int64
	// Unfinished is a query that returns a description of each operation that has not ended.
	Unfinished string
}

// Database is a read-only session in the database of Kyma Provisioner or KEB.
type Database struct {
	db *sqlx.DB
}

// readOnly opens connections that cannot write. database/sql also uses it to replace a lost connection.
type readOnly struct{ driver.Connector }

// Connect implements driver.Connector.
func (r readOnly) Connect(ctx context.Context) (driver.Conn, error) {
	connection, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // database/sql inspects the driver's own errors
	}

	execer, able := connection.(driver.ExecerContext)
	if !able {
		return nil, errors.Join(fmt.Errorf("unexpected connection type %T", connection), connection.Close())
	}

	if _, err := execer.ExecContext(ctx, fmt.Sprintf(`SET application_name = '%s'; SET default_transaction_read_only = on;
		SET statement_timeout = %d`, applicationName, callTimeout.Milliseconds()), nil); err != nil {
		return nil, errors.Join(err, connection.Close())
	}

	return connection, nil
}

// Open connects to the database of Kyma Provisioner or KEB. The session cannot write. Errors do not contain the connection
// string, because it contains a password.
func Open(ctx context.Context, url secret.String) (*Database, error) {
	connector, err := pq.NewConnector(url.Reveal())
	if err != nil {
		return nil, errors.New(program.Prefix + "FORMER_DATABASE_URL or --former-dsn-file: the connection string is not valid: " +
			"write postgres://user:password@host:port/name?sslmode=require")
	}

	database := &Database{db: sqlx.NewDb(sql.OpenDB(readOnly{connector}), "postgres")}
	database.db.SetMaxOpenConns(1)

	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	if err := database.db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to the database to take over: %w", err), database.Close())
	}

	return database, nil
}

// Close ends the session.
func (d *Database) Close() error {
	if err := d.db.Close(); err != nil {
		return fmt.Errorf("closing the database to take over: %w", err)
	}

	return nil
}

// Select runs a query with ? placeholders and returns the rows. A slice in args is expanded for IN (?) and must not be empty.
func Select[Row any](ctx context.Context, database *Database, query string, args ...any) ([]Row, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	query, args, err := sqlx.In(query, args...)
	if err != nil {
		return nil, fmt.Errorf("preparing a query: %w", err)
	}

	rows := []Row{}
	if err := database.db.SelectContext(ctx, &rows, database.db.Rebind(query), args...); err != nil {
		return nil, fmt.Errorf("reading the database to take over: %w", err)
	}

	return rows, nil
}

// Check returns an error if the program's rows cannot be taken over now. Reasons are that another session uses the
// database, that operations have not ended, and that the schema is too old or unusable. Check reports all reasons at once, but it
// looks for operations only in a usable schema.
func (d *Database) Check(ctx context.Context, former Program, ignoredUsers []string) error {
	version, err := d.version(ctx, former)
	if err != nil {
		return err
	}

	sessions, err := d.sessions(ctx, ignoredUsers)
	if err != nil {
		return err
	}

	errs := []error{version}

	if len(sessions) > 0 {
		errs = append(errs, fmt.Errorf("other sessions use the database of %s: %s. If the sessions belong to %s, stop it. Otherwise, pass their database users with --ignore-users",
			former.Name, named(sessions), former.Name))
	}

	if version != nil {
		return errors.Join(errs...) // the columns of the next query might not exist
	}

	unfinished, err := Select[string](ctx, d, former.Unfinished)
	if err != nil {
		return err
	}

	if len(unfinished) > 0 {
		errs = append(errs, fmt.Errorf("%s has unfinished operations: %s. Start the program again and wait until they have ended. If nothing works on an operation anymore, set its state to failed in the database",
			former.Name, named(unfinished)))
	}

	return errors.Join(errs...)
}

// version returns a problem if the schema has an unsupported version or its last migration has failed. golang-migrate stores the
// version in the schema_migrations table.
func (d *Database) version(ctx context.Context, former Program) (problem, err error) {
	type migrated struct {
		Version int64 `db:"version"`
		Dirty   bool  `db:"dirty"`
	}

	exists, err := Select[bool](ctx, d, `SELECT to_regclass('schema_migrations') IS NOT NULL`)
	if err != nil {
		return nil, err
	}

	if len(exists) == 0 || !exists[0] {
		return fmt.Errorf("this is not the database of %s: it has no schema_migrations table", former.Name), nil
	}

	found, err := Select[migrated](ctx, d, `SELECT version, dirty FROM schema_migrations ORDER BY version DESC LIMIT 1`)

	switch {
	case err != nil:
		return nil, err
	case len(found) == 0 || found[0].Version < former.Version:
		return fmt.Errorf("the schema of %s is older than %d: upgrade %s first", former.Name, former.Version, former.Name), nil
	case found[0].Dirty:
		return fmt.Errorf("the last schema migration of %s failed (schema_migrations.dirty is true): repair the schema first", former.Name), nil
	default:
		return nil, nil
	}
}

// sessions returns a description of each other client session in the database, except sessions of ignoredUsers. PostgreSQL hides
// the type and the address of another user's session from users without the privileges of pg_read_all_stats, so a session
// without a type counts. Only sessions of clients and their workers have a user.
func (d *Database) sessions(ctx context.Context, ignoredUsers []string) ([]string, error) {
	return Select[string](ctx, d, `SELECT format('user %s%s%s', usename, ' from ' || host(client_addr), ', application ' || nullif(application_name, ''))
		FROM pg_stat_activity WHERE datname = current_database() AND COALESCE(backend_type, 'client backend') = 'client backend'
			AND application_name <> ? AND usename NOT IN (?) ORDER BY pid`, applicationName, append([]string{""}, ignoredUsers...))
}

// named joins the first maxNamed names and says how many more there are.
func named(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], "; "), more)
	}

	return strings.Join(names, "; ")
}

// CheckKey returns an error if the cipher cannot decrypt one of the samples, which are encrypted values. If there are no samples,
// the key cannot be checked, but it is not needed either.
func CheckKey(cipher *Cipher, samples []string) error {
	for _, sample := range samples {
		if _, err := cipher.Decrypt(sample); err != nil {
			return fmt.Errorf("the key cannot decrypt a sample value from the database: check %sFORMER_DATABASE_SECRET_KEY or --former-key-file: %w",
				program.Prefix, err)
		}
	}

	return nil
}
