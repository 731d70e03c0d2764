package keyrotation_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/keyrotation"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// many is more than one window and more than one transaction.
const many = 530

func place(id string) string { return "text of row " + id }

// bench is a table of sealed texts.
type bench struct {
	*testing.T

	db  *storage.DB
	log *logtest.Hook
}

func each(t *testing.T, test func(b *bench)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		b := &bench{T: t, db: db}
		b.execute(`CREATE TABLE texts (id TEXT PRIMARY KEY, envelope TEXT NOT NULL)`)
		test(b)
	})
}

func (b *bench) execute(statement string, args ...any) {
	b.Helper()

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		_, err := storage.Exec(b.Context(), tx, statement, args...)

		return err
	}); err != nil {
		b.Fatal(err)
	}
}

// fill adds rows that are sealed with the first of the keys.
func (b *bench) fill(prefix string, count int, keys *secret.Keyring) {
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

// resealer returns one whose log and metrics can be looked at.
func (b *bench) resealer(keys *secret.Keyring) (*keyrotation.Resealer, *prometheus.Registry) {
	logger, hook := logtest.NewNullLogger()
	registry := prometheus.NewRegistry()
	b.log = hook

	return keyrotation.New(keyrotation.Options{
		DB: b.db, Keys: keys, Columns: []storage.SealedColumn{{Table: "texts", Column: "envelope", Place: place}},
		Clock: clock.RealClock{}, Log: logger, Metrics: registry,
	}), registry
}

// sealedWith counts the rows by the key that they name, and fails the test if one that is to be readable is not what it was.
func (b *bench) sealedWith(keys *secret.Keyring) map[string]int {
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
			b.Errorf("row %s holds %q now", row.ID, plain)
		}
	}

	return counts
}

// told lists what the log says, with the key that it says it of.
func (b *bench) told() []string {
	lines := []string{}
	for _, entry := range b.log.AllEntries() {
		lines = append(lines, strings.TrimSpace(fmt.Sprint(entry.Data["key"], ": ", entry.Message)))
	}

	return lines
}

const (
	resealedRows = "environment_broker_rows_resealed_total"
	leftRows     = "environment_broker_rows_not_resealed"
)

// measured tells the metrics of the one table.
func (b *bench) measured(registry *prometheus.Registry) map[string]float64 {
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
	free = ": no row is sealed with this key: when no replica seals with it, it may be removed"
	anew = "<nil>: rows are sealed anew with the first key"
)

// TestAKeyIsExchanged follows the steps that the operator's guide tells.
func TestAKeyIsExchanged(t *testing.T) {
	each(t, func(b *bench) {
		former, next := secret.NewKey("k1"), secret.NewKey("k2")
		b.fill("a", many, ring(b.T, former))

		// First every replica is given the new key behind the old one.
		behind := ring(b.T, former, next)
		resealer, _ := b.resealer(behind)

		if err := resealer.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(map[string]int{"k1": many}, b.sealedWith(behind)); diff != "" {
			b.Errorf("a key that only opens changes nothing: -want +got\n%s", diff)
		}

		// Then it comes to the front. A row that a replica seals with the old one meanwhile is found too.
		front := ring(b.T, next, former)
		resealer, registry := b.resealer(front)

		if err := resealer.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		b.fill("late", 1, behind)

		if err := resealer.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(map[string]int{"k2": many + 1}, b.sealedWith(front)); diff != "" {
			b.Errorf("every row is sealed with the first key: -want +got\n%s", diff)
		}

		if diff := cmp.Diff([]string{anew, "k1" + free, anew, "k1" + free}, b.told()); diff != "" {
			b.Errorf("log: -want +got\n%s", diff)
		}

		if diff := cmp.Diff(map[string]float64{resealedRows: many + 1, leftRows: 0}, b.measured(registry)); diff != "" {
			b.Errorf("metrics: -want +got\n%s", diff)
		}

		// At last the old one is removed: whatever is there opens without it.
		alone := ring(b.T, next)
		resealer, _ = b.resealer(alone)

		if err := resealer.Rotate(b.Context()); err != nil || len(b.told()) != 0 {
			b.Errorf("with one key there is nothing to do or to tell: %v, %v", err, b.told())
		}
	})
}

func TestARowThatCannotBeOpenedIsToldAndPassedBy(t *testing.T) {
	each(t, func(b *bench) {
		former, next := secret.NewKey("k1"), secret.NewKey("k2")
		b.fill("lost", 2, ring(b.T, secret.NewKey("k0")))
		b.fill("there", 3, ring(b.T, former))
		b.execute(`INSERT INTO texts VALUES ('moved', ?)`, ring(b.T, former).Seal([]byte("x"), place("elsewhere")))

		keys := ring(b.T, next, former)
		resealer, registry := b.resealer(keys)

		if err := resealer.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(map[string]int{"k0": 2, "k1": 1, "k2": 3}, b.sealedWith(keys)); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}

		if diff := cmp.Diff(map[string]float64{resealedRows: 3, leftRows: 3}, b.measured(registry)); diff != "" {
			b.Errorf("metrics: -want +got\n%s", diff)
		}

		last := b.log.LastEntry()
		if last.Message != "rows are sealed with a former key, it has to stay" || last.Data["key"] != "k1" || last.Data["rows"] != 1 {
			b.Errorf("that the former key is needed still is not told: %v", last)
		}

		if shown := fmt.Sprint(b.log.AllEntries()[1].Data); !strings.Contains(shown, `key "k0" is not configured`) {
			b.Errorf("why rows cannot be opened is not told: %s", shown)
		}
	})
}

func TestReplicasAndWritersDoNotDisturbEachOther(t *testing.T) {
	const writes = 300

	each(t, func(b *bench) {
		former, next := secret.NewKey("k1"), secret.NewKey("k2")
		behind, front := ring(b.T, former, next), ring(b.T, next, former)
		b.fill("a", many, behind)

		ctx, stop := context.WithCancel(b.Context())

		var replicas, writer sync.WaitGroup

		writer.Go(func() { // a replica that still seals with the former key
			defer stop()

			for i := range writes {
				id := fmt.Sprintf("a-%04d", i%many)
				b.execute(`UPDATE texts SET envelope = ? WHERE id = ?`, behind.Seal([]byte(id), place(id)), id)
			}
		})

		for range 2 {
			resealer, _ := b.resealer(front)

			replicas.Go(func() {
				// It ends once the writer is slower for a moment, or when it is told to.
				if err := resealer.Rotate(ctx); err != nil && ctx.Err() == nil {
					b.Error(err)
				}
			})
		}

		writer.Wait()
		replicas.Wait()

		resealer, _ := b.resealer(front)
		if err := resealer.Rotate(b.Context()); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(map[string]int{"k2": many}, b.sealedWith(front)); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}
