package keyrotation_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/keyrotation"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// many is a number of rows that needs several read batches and several write batches.
const many = 530

func place(id string) string { return "text of row " + id }

// fixture is a database with a table of sealed texts, and the log of the last rotator.
type fixture struct {
	*testing.T

	db  *storage.DB
	log *logtest.Hook
}

func each(t *testing.T, test func(b *fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		b := &fixture{T: t, db: db}
		b.execute(`CREATE TABLE texts (id TEXT PRIMARY KEY, envelope TEXT NOT NULL)`)
		test(b)
	})
}

func (b *fixture) execute(statement string, args ...any) {
	b.Helper()

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		_, err := storage.Exec(b.Context(), tx, statement, args...)

		return err
	}); err != nil {
		b.Fatal(err)
	}
}

// fill adds rows that are sealed with the first key of the keyring.
func (b *fixture) fill(prefix string, count int, keys *secret.Keyring) {
	b.Helper()

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		for i := range count {
			id := fmt.Sprintf("%s-%04d", prefix, i)
			if _, err := storage.Exec(b.Context(), tx, `INSERT INTO texts VALUES (?, ?)`, id, keys.Seal([]byte(id), place(id))); err != nil {
				return err
			}
		}

		return nil
	}); err != nil {
		b.Fatal(err)
	}
}

// rotator returns a rotator with a new registry and records the rotator's log in the fixture.
func (b *fixture) rotator(keys *secret.Keyring) (*keyrotation.Rotator, *prometheus.Registry) {
	logger, hook := logtest.NewNullLogger()
	registry := prometheus.NewRegistry()
	b.log = hook

	return keyrotation.New(keyrotation.Options{
		DB: b.db, Keys: keys, Columns: []storage.SealedColumn{{Table: "texts", Column: "envelope", Place: place}},
		Clock: clock.RealClock{}, Log: logger, Metrics: registry,
	}), registry
}

// slowClock pretends that every query takes a second, and records the pauses instead of waiting.
type slowClock struct {
	clock.RealClock

	pauses *[]time.Duration
}

func (slowClock) Since(time.Time) time.Duration { return time.Second }

func (c slowClock) NewTimer(pause time.Duration) clock.Timer {
	*c.pauses = append(*c.pauses, pause)

	return c.RealClock.NewTimer(0)
}

// TestSlowScans checks that each pause of a scan is nine times as long as the query before it.
func TestSlowScans(t *testing.T) {
	each(t, func(b *fixture) {
		keys := ring(b.T, secret.NewKey("k1"))
		b.fill("row", many, keys)

		rotator, _ := b.rotator(keys)

		var pauses []time.Duration

		rotator.Clock = slowClock{pauses: &pauses}

		if err := rotator.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff([]time.Duration{9 * time.Second}, pauses); diff != "" {
			b.Errorf("pauses after the queries (-want +got):\n%s", diff)
		}
	})
}

// sealedWith counts the rows by the ID of the key in their envelope. It fails the test if the content of a readable row has
// changed.
func (b *fixture) sealedWith(keys *secret.Keyring) map[string]int {
	b.Helper()

	type row struct {
		ID       string `db:"id"`
		Envelope string `db:"envelope"`
	}

	rows, err := storage.Select[row](b.Context(), b.db.Reader(), `SELECT * FROM texts`)
	if err != nil {
		b.Fatal(err)
	}

	counts := map[string]int{}

	for _, row := range rows {
		counts[secret.KeyOf(row.Envelope)]++

		if plain, err := keys.Open(row.Envelope, place(row.ID)); err == nil && string(plain) != row.ID {
			b.Errorf("row %s contains %q", row.ID, plain)
		}
	}

	return counts
}

// logged lists the log messages of the last rotator, each prefixed with the value of its field "key" and a colon.
func (b *fixture) logged() []string {
	lines := []string{}
	for _, entry := range b.log.AllEntries() {
		lines = append(lines, strings.TrimSpace(fmt.Sprint(entry.Data["key"], ": ", entry.Message)))
	}

	return lines
}

const (
	reencryptedRows = "environment_broker_reencrypted_rows_total"
	unreadableRows  = "environment_broker_unreadable_rows"
)

// measured returns the values of the metrics, by name.
func (b *fixture) measured(registry *prometheus.Registry) map[string]float64 {
	b.Helper()

	families, err := registry.Gather()
	if err != nil {
		b.Fatal(err)
	}

	values := map[string]float64{}
	for _, family := range families {
		values[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue() + family.GetMetric()[0].GetCounter().GetValue()
	}

	return values
}

func ring(t *testing.T, keys ...secret.String) *secret.Keyring {
	t.Helper()

	texts := []string{}
	for _, key := range keys {
		texts = append(texts, key.Reveal())
	}

	parsed, err := secret.ParseKeyring(secret.String(strings.Join(texts, ",")))
	if err != nil {
		t.Fatal(err)
	}

	return parsed
}

const (
	removable   = ": no row is sealed with this key: remove it once no replica uses it to seal rows"
	reencrypted = "<nil>: re-encrypted rows with the first key of APP_DATABASE_SECRET_KEYS"
)

// TestRotation follows the steps in docs/operator/keys.md.
func TestRotation(t *testing.T) {
	each(t, func(b *fixture) {
		former, next := secret.NewKey("k1"), secret.NewKey("k2")
		b.fill("a", many, ring(b.T, former))

		// First, every replica gets the new key as its second key.
		newKeySecond := ring(b.T, former, next)
		rotator, _ := b.rotator(newKeySecond)

		if err := rotator.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(map[string]int{"k1": many}, b.sealedWith(newKeySecond)); diff != "" {
			b.Errorf("a second key changes nothing: -want +got\n%s", diff)
		}

		// Then the new key becomes the first key. The rotation must also find a row that another replica seals with the old
		// key in the meantime.
		newKeyFirst := ring(b.T, next, former)
		rotator, registry := b.rotator(newKeyFirst)

		if err := rotator.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		b.fill("late", 1, newKeySecond)

		if err := rotator.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(map[string]int{"k2": many + 1}, b.sealedWith(newKeyFirst)); diff != "" {
			b.Errorf("every row is sealed with the first key: -want +got\n%s", diff)
		}

		if diff := cmp.Diff([]string{reencrypted, "k1" + removable, reencrypted, "k1" + removable}, b.logged()); diff != "" {
			b.Errorf("log: -want +got\n%s", diff)
		}

		if diff := cmp.Diff(map[string]float64{reencryptedRows: many + 1, unreadableRows: 0}, b.measured(registry)); diff != "" {
			b.Errorf("metrics: -want +got\n%s", diff)
		}

		// Finally, operators remove the old key. Every row can be decrypted without it.
		newKeyOnly := ring(b.T, next)
		rotator, _ = b.rotator(newKeyOnly)

		if err := rotator.Rotate(b.Context()); err != nil || len(b.logged()) != 0 {
			b.Errorf("with a single key the rotation changed or logged something: %v, %v", err, b.logged())
		}
	})
}

// TestRotationSealsColumns rotates rows that an older release sealed without their bound columns, rows with them, and values that
// are no objects.
func TestRotationSealsColumns(t *testing.T) {
	each(t, func(b *fixture) {
		formerKey, next := secret.NewKey("k1"), secret.NewKey("k2")
		former := ring(b.T, formerKey)

		b.execute(`ALTER TABLE texts ADD COLUMN owner TEXT`)
		b.execute(`ALTER TABLE texts ADD COLUMN cluster TEXT NOT NULL DEFAULT ''`)

		for id, plain := range map[string]string{
			"former": `{"a":1}`, "bound": `{"columns":{"owner":"sealed"},"a":1}`, "empty": `{}`, "other": `[1]`, "no owner": `{"a":2}`,
		} {
			b.execute(`INSERT INTO texts VALUES (?, ?, ?, ?)`, id, former.Seal([]byte(plain), place(id)), "owner of "+id, "")
		}

		b.execute(`UPDATE texts SET owner = NULL WHERE id = 'no owner'`)

		keys := ring(b.T, next, formerKey)
		rotator, _ := b.rotator(keys)
		rotator.Columns[0].Bound = []string{"owner", "cluster"}

		if err := rotator.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		for id, want := range map[string]string{
			"former": `{"columns":{"owner":"owner of former"},"a":1}`, "bound": `{"columns":{"owner":"sealed"},"a":1}`,
			"empty": `{"columns":{"owner":"owner of empty"}}`, "other": `[1]`, "no owner": `{"columns":{},"a":2}`,
		} {
			sealed, err := storage.Get[string](b.Context(), b.db.Reader(), `SELECT envelope FROM texts WHERE id = ?`, id)
			if err != nil {
				b.Fatal(err)
			}

			got, err := keys.Open(sealed, place(id))
			if diff := cmp.Diff(want, string(got)); diff != "" || err != nil || !strings.HasPrefix(sealed, "k2:") {
				b.Errorf("%s: %v, -want +got\n%s", id, err, diff)
			}
		}
	})
}

func TestUnreadableRowsAreReportedAndSkipped(t *testing.T) {
	each(t, func(b *fixture) {
		former, next := secret.NewKey("k1"), secret.NewKey("k2")
		b.fill("lost", 2, ring(b.T, secret.NewKey("k0")))
		b.fill("there", 3, ring(b.T, former))
		b.execute(`INSERT INTO texts VALUES ('moved', ?)`, ring(b.T, former).Seal([]byte("x"), place("elsewhere")))

		keys := ring(b.T, next, former)
		rotator, registry := b.rotator(keys)

		if err := rotator.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(map[string]int{"k0": 2, "k1": 1, "k2": 3}, b.sealedWith(keys)); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}

		if diff := cmp.Diff(map[string]float64{reencryptedRows: 3, unreadableRows: 3}, b.measured(registry)); diff != "" {
			b.Errorf("metrics: -want +got\n%s", diff)
		}

		last := b.log.LastEntry()
		if last.Message != "the old key is still needed: rows that it sealed could not be re-encrypted" || last.Data["key"] != "k1" || last.Data["rows"] != 1 {
			b.Errorf("the log does not report that the old key is still needed: %v", last)
		}

		if shown := fmt.Sprint(b.log.AllEntries()[1].Data); !strings.Contains(shown, `does not contain the key "k0"`) {
			b.Errorf("the log does not explain why rows cannot be decrypted: %s", shown)
		}
	})
}

func TestConcurrentReplicasAndWriters(t *testing.T) {
	const writes = 300

	each(t, func(b *fixture) {
		former, next := secret.NewKey("k1"), secret.NewKey("k2")
		newKeySecond, newKeyFirst := ring(b.T, former, next), ring(b.T, next, former)
		b.fill("a", many, newKeySecond)

		ctx, stop := context.WithCancel(b.Context())

		var replicas, writer sync.WaitGroup

		writer.Go(func() { // simulates a replica that still seals with the old key
			defer stop()

			for i := range writes {
				id := fmt.Sprintf("a-%04d", i%many)
				b.execute(`UPDATE texts SET envelope = ? WHERE id = ?`, newKeySecond.Seal([]byte(id), place(id)), id)
			}
		})

		for range 2 {
			rotator, _ := b.rotator(newKeyFirst)

			replicas.Go(func() {
				// Rotate returns when a scan finds no row with the old key, or when the writer is done and ends the context.
				if err := rotator.Rotate(ctx); err != nil && ctx.Err() == nil {
					b.Error(err)
				}
			})
		}

		writer.Wait()
		replicas.Wait()

		rotator, _ := b.rotator(newKeyFirst)
		if err := rotator.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(map[string]int{"k2": many}, b.sealedWith(newKeyFirst)); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}
