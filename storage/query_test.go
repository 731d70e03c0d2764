package storage_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

const createPairs = `CREATE TABLE pairs (id TEXT PRIMARY KEY, color TEXT NOT NULL UNIQUE, size BIGINT NOT NULL CHECK (size > 0))`

// pair is a row of the pairs table, which has every kind of constraint.
type pair struct {
	ID    string `db:"id"`
	Color string `db:"color"`
	Size  int64  `db:"size"`
}

func TestIsDuplicate(t *testing.T) {
	cases := map[string]struct {
		reason    string
		statement string
		want      bool
	}{
		"primary key":   {"the row exists", `INSERT INTO pairs VALUES ('a', 'blue', 1)`, true},
		"unique column": {"another row has the value", `INSERT INTO pairs VALUES ('b', 'red', 1)`, true},
		"update":        {"another row has the value", `UPDATE pairs SET color = 'red' WHERE id = 'z'`, true},
		"check":         {"a violated constraint is an error", `INSERT INTO pairs VALUES ('b', 'blue', 0)`, false},
		"null":          {"a missing value is an error", `INSERT INTO pairs (id, color) VALUES ('b', 'blue')`, false},
		"no table":      {"an invalid statement is not a duplicate", `INSERT INTO triples VALUES (1)`, false},
	}

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		execute(t, db, createPairs, `INSERT INTO pairs VALUES ('a', 'red', 1)`, `INSERT INTO pairs VALUES ('z', 'grey', 1)`)

		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				err := db.InTx(t.Context(), func(tx storage.Tx) error {
					_, err := storage.Exec(t.Context(), tx, c.statement)

					return err
				})
				if err == nil || storage.IsDuplicate(err) != c.want || storage.IsUnavailable(err) {
					t.Errorf("%s: IsDuplicate is %t, IsUnavailable %t for %v", c.reason, storage.IsDuplicate(err), storage.IsUnavailable(err), err)
				}
			})
		}
	})

	if storage.IsDuplicate(nil) || storage.IsDuplicate(errors.New("duplicate key")) {
		t.Error("an error that is not from the database is reported as a duplicate")
	}
}

func TestQueries(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		ctx := t.Context()

		execute(t, db, createPairs)

		err := db.InTx(ctx, func(tx storage.Tx) error {
			for _, row := range []pair{{"a", "red", 1}, {"b", "a ? b", 2}, {"c", "blue", 3}} {
				if _, err := storage.Exec(ctx, tx, `INSERT INTO pairs (id, color, size) VALUES (?, ?, ?)`, row.ID, row.Color, row.Size); err != nil {
					return err
				}
			}

			changed, err := storage.Exec(ctx, tx, `UPDATE pairs SET size = size + ? WHERE id IN (?)`, 10, []string{"a", "c", "x"})
			if changed != 2 {
				t.Errorf("%d rows changed, want the 2 existing rows", changed)
			}

			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		rows, err := storage.Select[pair](ctx, db.Reader(), `SELECT * FROM pairs WHERE size > ? ORDER BY id`, 2)
		if diff := cmp.Diff([]pair{{"a", "red", 11}, {"c", "blue", 13}}, rows); diff != "" || err != nil {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}

		none, err := storage.Select[pair](ctx, db.Reader(), `SELECT * FROM pairs WHERE color = ?`, "green")
		if err != nil || none == nil || len(none) != 0 {
			t.Errorf("a query without rows returns %v, %v", none, err)
		}

		if row, err := storage.Get[pair](ctx, db.Reader(), `SELECT * FROM pairs WHERE color = ?`, "a ? b"); err != nil || row.ID != "b" {
			t.Errorf("a value with a question mark returns %v, %v", row, err)
		}

		if _, err := storage.Get[pair](ctx, db.Reader(), `SELECT * FROM pairs WHERE id = ?`, "x"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("a query without rows returns %v, want ErrNotFound", err)
		}

		if _, err := storage.Select[pair](ctx, db.Reader(), `SELECT * FROM pairs WHERE id IN (?)`, []string{}); err == nil {
			t.Error("an empty list must be an error")
		}
	})
}
