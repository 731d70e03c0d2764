package storage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// twoPrimaries returns a list of a former primary, whose counter is 0, and the new primary, whose counter is 1. The proxy leads to
// the new primary.
func twoPrimaries(t *testing.T) (config storage.Config, toNew *postgrestest.Proxy) {
	t.Helper()

	former := postgrestest.Own(t)
	config = former.Database(t)
	execute(t, storagetest.Open(t, config), createCounter, zero)

	promoted := former.Clone(t)
	if err := promoted.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}

	newest := promoted.Config(t, config.Name)
	if err := add(t.Context(), storagetest.Open(t, newest).Writer()); err != nil {
		t.Fatal(err)
	}

	newest, toNew = postgrestest.Through(t, newest)
	config.Host, config.Port = config.Host+","+newest.Host, config.Port+","+newest.Port

	return config, toNew
}

// TestFormerPrimaryInAList lists a former primary, which does not know that it was replaced, before the new one.
func TestFormerPrimaryInAList(t *testing.T) {
	config, toNew := twoPrimaries(t)

	if got := counted(t, storagetest.Open(t, config)); got != 1 {
		t.Errorf("the counter is %d, want that of the new primary", got)
	}

	toNew.Cut()

	db := storagetest.Open(t, config)
	if got := counted(t, db); got != 0 {
		t.Errorf("the counter is %d, want that of the only primary within reach", got)
	}

	// While a transaction uses the first connection, another call opens a second one, which finds the new primary.
	if err := db.InTx(t.Context(), func(tx storage.Tx) error {
		toNew.Mend()

		if got := counted(t, db); got != 1 {
			t.Errorf("the counter is %d on a new connection, want that of the new primary", got)
		}

		return add(t.Context(), tx)
	}); !storage.IsUnavailable(err) || !strings.Contains(err.Error(), "former primary") {
		t.Errorf("a transaction on the former primary returns %v", err)
	}

	toNew.Cut()

	if _, err := storage.Get[int](t.Context(), db.Reader(), `SELECT value FROM counter`); !storage.IsUnavailable(err) {
		t.Errorf("the former primary is used again: %v", err)
	}
}

// TestConnectionsAreReplacedAfterASilence opens two connections to a database that then does not answer for some time.
func TestConnectionsAreReplacedAfterASilence(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		limit   time.Duration
		replace bool
	}{
		"short silence": {"connections are expensive", time.Hour, false},
		"long silence":  {"the server may be a paused one that continues to run", time.Nanosecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			db := storagetest.Open(t, storage.WithSilenceLimit(postgrestest.Database(t), c.limit))
			first := backend(t, db.Reader())

			if replaced := backend(t, db.Reader()) != first; replaced != c.replace {
				t.Errorf("%s: replaced is %t, want %t", c.reason, replaced, c.replace)
			}

			if err := db.InTx(t.Context(), func(tx storage.Tx) error {
				backend(t, db.Reader()) // opens a second connection
				backend(t, db.Reader()) // notices the silence

				_, err := storage.Get[int](t.Context(), tx, `SELECT pg_backend_pid()`)

				return err
			}); storage.IsUnavailable(err) != c.replace {
				t.Errorf("%s: a call that began before the silence returns %v", c.reason, err)
			}
		})
	}
}

// backend returns the ID of the process that serves a connection.
func backend(t *testing.T, tx storage.Tx) int {
	t.Helper()

	id, err := storage.Get[int](t.Context(), tx, `SELECT pg_backend_pid()`)
	if err != nil {
		t.Error(err)
	}

	return id
}

// TestOtherCluster lists the primaries of two different clusters.
func TestOtherCluster(t *testing.T) {
	first, second := postgrestest.Own(t), postgrestest.Own(t)
	config, other := first.Config(t, "postgres"), second.Config(t, "postgres")
	config.Host, config.Port = config.Host+","+other.Host, config.Port+","+other.Port

	if db, err := storage.Open(t.Context(), config); err == nil || !strings.Contains(err.Error(), "APP_DATABASE_HOST") {
		t.Errorf("a list of two clusters is %v, %v", db, err)
	}
}
