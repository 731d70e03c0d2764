package storage_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

type moment struct {
	ID string       `db:"id"`
	At storage.Time `db:"at"`
}

func execute(t *testing.T, db *storage.DB, statements ...string) {
	t.Helper()

	err := db.InTx(t.Context(), func(tx storage.Tx) error {
		for _, statement := range statements {
			if _, err := storage.Exec(t.Context(), tx, statement); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func insertMoment(t *testing.T, db *storage.DB, id string, at time.Time) {
	t.Helper()

	if _, err := storage.Exec(t.Context(), db.Writer(), `INSERT INTO moments (id, at) VALUES (?, ?)`, id, storage.At(at)); err != nil {
		t.Fatal(err)
	}
}

const createMoments = `CREATE TABLE moments (id TEXT PRIMARY KEY, at TIMESTAMPTZ)`

func TestTimeRoundTrip(t *testing.T) {
	east := time.FixedZone("east", 5*3600+1800)

	cases := map[string]struct {
		reason string
		at     time.Time
		want   time.Time
	}{
		"zero":              {"the zero time is NULL in both directions", time.Time{}, time.Time{}},
		"UTC":               {"precision is kept", time.Date(2026, 3, 4, 5, 6, 7, 890123000, time.UTC), time.Date(2026, 3, 4, 5, 6, 7, 890123000, time.UTC)},
		"another time zone": {"times are converted to UTC", time.Date(2026, 3, 4, 1, 0, 0, 0, east), time.Date(2026, 3, 3, 19, 30, 0, 0, time.UTC)},
		"nanoseconds":       {"both databases have microseconds", time.Date(2026, 3, 4, 5, 6, 7, 999999999, time.UTC), time.Date(2026, 3, 4, 5, 6, 7, 999999000, time.UTC)},
		"no fraction":       {"the format has six digits", time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)},
		"long ago":          {"the Unix epoch is not the zero time", time.Unix(0, 0), time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)},
	}

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		execute(t, db, createMoments)

		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				insertMoment(t, db, name, c.at)

				got, err := storage.Get[moment](t.Context(), db.Reader(), `SELECT * FROM moments WHERE id = ?`, name)
				if err != nil || !got.At.Equal(c.want) || got.At.Location() != time.UTC {
					t.Errorf("%s: got %s, %v, want %s", c.reason, got.At, err, c.want)
				}

				// At returns the time that a later read returns.
				if kept := storage.At(c.at); !kept.Equal(got.At.Time) {
					t.Errorf("%s: At returns %s, the database %s", c.reason, kept, got.At)
				}
			})
		}

		empty, err := storage.Select[string](t.Context(), db.Reader(), `SELECT id FROM moments WHERE at IS NULL`)
		if diff := cmp.Diff([]string{"zero"}, empty); diff != "" || err != nil {
			t.Errorf("NULL, %v, -want +got:\n%s", err, diff)
		}
	})
}

func TestOtherTimesAreStoredInTheSameForm(t *testing.T) {
	stored, err := storage.Time{Time: time.Date(2026, 3, 4, 1, 0, 0, 5999, time.FixedZone("east", 3600))}.Value()
	if diff := cmp.Diff("2026-03-04T00:00:00.000005Z", stored); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

func TestTimesAreComparedAsTimes(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		execute(t, db, createMoments)

		noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
		insertMoment(t, db, "next day", noon.Add(24*time.Hour).In(time.FixedZone("west", -11*3600)))
		insertMoment(t, db, "noon", noon)
		insertMoment(t, db, "just after", noon.Add(time.Microsecond))
		insertMoment(t, db, "tenth after", noon.Add(100*time.Millisecond))
		insertMoment(t, db, "just before", noon.Add(-time.Microsecond))

		ids, err := storage.Select[string](t.Context(), db.Reader(),
			`SELECT id FROM moments WHERE at >= ? ORDER BY at`, storage.At(noon.In(time.FixedZone("east", 9*3600))))
		if diff := cmp.Diff([]string{"noon", "just after", "tenth after", "next day"}, ids); diff != "" || err != nil {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}
	})
}

func TestInvalidTimesAreRejected(t *testing.T) {
	for name, source := range map[string]any{"number": int64(7), "text": "yesterday", "another form": "2026-03-04 05:06:07", "bytes": []byte("2026")} {
		t.Run(name, func(t *testing.T) {
			var got storage.Time
			if err := got.Scan(source); err == nil || !strings.Contains(err.Error(), "reading a stored time") {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestSealedColumns(t *testing.T) {
	bound := storage.Bound{"tenant": `a"b`, "runtime": ""}

	for object, want := range map[string]string{
		`{}`:              `{"columns":{"runtime":"","tenant":"a\"b"}}`,
		`{"a": [1] }`:     `{"columns":{"runtime":"","tenant":"a\"b"},"a": [1] }`,
		`{"b":{"c":"}"}}`: `{"columns":{"runtime":"","tenant":"a\"b"},"b":{"c":"}"}}`,
	} {
		sealed, err := bound.Prepend([]byte(object))
		if err != nil || string(sealed) != want || !json.Valid(sealed) {
			t.Errorf("%s: got %s, %v", object, sealed, err)
		}

		cut, found, err := storage.CutBound(sealed)
		if err != nil || string(cut) != strings.TrimSpace(object) || !maps.Equal(found, bound) {
			t.Errorf("%s: got %s, %v, %v", object, cut, found, err)
		}

		if same, found, err := storage.CutBound([]byte(object)); err != nil || string(same) != object || found != nil {
			t.Errorf("an object without columns: got %s, %v, %v", same, found, err)
		}
	}

	for _, other := range []string{``, `[1]`, `null`, `1`} {
		if got, err := bound.Prepend([]byte(other)); err == nil {
			t.Errorf("%q: got %s", other, got)
		}
	}

	if got, _, err := storage.CutBound([]byte(`{"a":1,"columns":{"tenant":"x"}}`)); err == nil {
		t.Errorf("columns that are not the first field: got %s", got)
	}
}
