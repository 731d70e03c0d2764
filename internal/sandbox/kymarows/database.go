package kymarows

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// Key is the key with which Encrypt encrypts columns. In tests, it stands for the key of Kyma Provisioner and KEB.
const Key secret.String = "a key of thirty-two bytes, truly"

//go:embed provisioner.sql
var provisionerSchema string

// Database is the database of Kyma Provisioner or KEB. All methods except Connect close their session before they return, because
// the adopt command treats an open session as a sign that Kyma Provisioner or KEB is still running.
type Database struct {
	testing.TB

	// URL is the connection string.
	URL secret.String
}

// Provisioner returns an empty database of Kyma Provisioner.
func Provisioner(tb testing.TB) Database {
	tb.Helper()

	return newDatabase(tb, provisionerSchema)
}

func newDatabase(tb testing.TB, schema string) Database {
	tb.Helper()

	config := postgrestest.Database(tb)
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password.Reveal()), Path: "/" + config.Name,
		RawQuery: url.Values{"host": {config.Host}, "port": {config.Port}, "sslmode": {config.SSLMode}}.Encode(),
	}
	database := Database{TB: tb, URL: secret.String(address.String())}
	database.Exec(schema)

	return database
}

// Exec executes a statement with ? placeholders for the arguments.
func (d Database) Exec(text string, args ...any) {
	d.Helper()
	d.run(statement{text: text, args: args})
}

// run executes statements in one session.
func (d Database) run(statements ...statement) {
	d.Helper()
	d.session(func(db *sqlx.DB) {
		for _, each := range statements {
			if _, err := db.ExecContext(d.Context(), db.Rebind(each.text), each.args...); err != nil {
				d.Fatalf("%s: %v", each.text, err)
			}
		}
	})
}

// Dump returns the rows of all tables as text, so that tests can detect changes.
func (d Database) Dump() (content string) {
	d.Helper()
	d.session(func(db *sqlx.DB) {
		if err := db.GetContext(d.Context(), &content, `SELECT string_agg(table_name || ' ' ||
				query_to_xml(format('SELECT * FROM %I AS row ORDER BY row::text', table_name), true, false, '')::text, '' ORDER BY table_name)
			FROM information_schema.tables WHERE table_schema = 'public'`); err != nil {
			d.Fatal(err)
		}
	})

	return content
}

// session calls use with a session, and waits until the server no longer lists the session.
func (d Database) session(use func(db *sqlx.DB)) {
	d.Helper()

	db := d.open()
	db.SetMaxOpenConns(1)

	var process int
	if err := db.GetContext(d.Context(), &process, `SELECT pg_backend_pid()`); err != nil {
		d.Fatal(err)
	}

	use(db)

	if err := db.Close(); err != nil {
		d.Fatal(err)
	}

	postgrestest.WaitForEnd(d, process)
}

// open connects to the database.
func (d Database) open() *sqlx.DB {
	d.Helper()

	db, err := sqlx.ConnectContext(d.Context(), "postgres", d.URL.Reveal())
	if err != nil {
		d.Fatal(err)
	}

	return db
}

// Connect opens a session as a running program would, and keeps it open until the test ends. application is the application_name
// of the session. Connect returns the database user of the session.
func (d Database) Connect(application string) (user string) {
	d.Helper()

	db := d.open()

	d.Cleanup(func() { _ = db.Close() }) // the database may already be gone
	db.SetMaxOpenConns(1)

	if _, err := db.ExecContext(d.Context(), `SET application_name = '`+application+`'`); err != nil {
		d.Fatal(err)
	}

	if err := db.GetContext(d.Context(), &user, `SELECT current_user`); err != nil {
		d.Fatal(err)
	}

	return user
}

// AsReader returns the same database for a user who may read all tables and has no other privileges. The user is removed at the end of
// the test.
func (d Database) AsReader() Database {
	d.Helper()

	address, err := url.Parse(d.URL.Reveal())
	if err != nil {
		d.Fatal(err)
	}

	name := "reader_of_" + strings.TrimPrefix(address.Path, "/")
	d.Exec(`CREATE ROLE ` + name + ` LOGIN PASSWORD '` + name + `'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ` + name)

	owner := d.URL.Reveal()

	d.Cleanup(func() { // the test's context has ended
		db, err := sqlx.Open("postgres", owner)
		if err != nil {
			d.Fatal(err)
		}

		_, err = db.ExecContext(context.Background(), `DROP OWNED BY `+name+`; DROP ROLE `+name)
		if err = errors.Join(err, db.Close()); err != nil {
			d.Error(err)
		}
	})

	address.User = url.UserPassword(name, name)
	d.URL = secret.String(address.String())

	return d
}

// Encrypt encrypts a string as Kyma Provisioner and KEB do: it encrypts the base64 form of the string with AES in CFB mode,
// prepends the IV, and returns the result in base64.
func Encrypt(tb testing.TB, text string) string {
	tb.Helper()

	block, err := aes.NewCipher([]byte(Key.Reveal()))
	if err != nil {
		tb.Fatal(err)
	}

	encoded := []byte(base64.StdEncoding.EncodeToString([]byte(text)))
	sealed := make([]byte, aes.BlockSize+len(encoded))
	_, _ = rand.Read(sealed[:aes.BlockSize]) // never fails

	cipher.NewCFBEncrypter(block, sealed[:aes.BlockSize]).XORKeyStream(sealed[aes.BlockSize:], encoded) //nolint:staticcheck // Kyma Provisioner and KEB use this mode

	return base64.StdEncoding.EncodeToString(sealed)
}
