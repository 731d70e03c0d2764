package storage_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// mayScanOnSQLite lists the calls that may scan a whole table on SQLite in addition to those in mayScan, with the reasons.
func mayScanOnSQLite() map[string]string {
	const newest = "SQLite does not use a partial index for a choice of kinds and states"

	return map[string]string{
		"instances.List of a kind":      newest,
		"instances.List being changed":  newest,
		"instances.List being deleted":  newest,
		"instances.List being made":     newest,
		"instances.List ready":          newest,
		"instances.List ready, by plan": newest,
		"instances.List suspended":      newest,
		"runtimes.List being created":   newest,
		"operations.List of a region":   "regions are few: an index slows down every order",
	}
}

// TestListsUseAnIndexOfSQLite checks that no list scans a whole table on SQLite, except for the calls in mayScan and
// mayScanOnSQLite. The tables can be empty, because SQLite chooses indexes by the schema alone. The statements are recorded on
// PostgreSQL, which receives the same statements. Counts are not checked: they are rarely requested, and SQLite is for
// installations with one replica.
func TestListsUseAnIndexOfSQLite(t *testing.T) {
	sqlite := storagetest.SQLite(t)
	openAll(t, sqlite, storagetest.Keys(t))

	var sent []storage.PreparedQuery

	db, err := storage.OpenRecording(storagetest.Postgres(t), func(statement storage.PreparedQuery) { sent = append(sent, statement) })
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = db.Close() })

	calls := openAll(t, db, storagetest.Keys(t)).listCalls()
	// A step that reads an index in order also starts with SCAN, but names the index after the table.
	scan := regexp.MustCompile(`^SCAN (operations|instances|runtimes)$`)

	for _, name := range slices.Sorted(maps.Keys(calls)) {
		_, allowed := mayScan()[name]
		_, excusedHere := mayScanOnSQLite()[name]

		if allowed || excusedHere || !strings.Contains(name, ".List ") {
			continue
		}

		sent = nil

		if err := calls[name](t.Context()); err != nil {
			t.Fatal(err)
		}

		if len(sent) == 0 {
			t.Fatalf("%s sends no statement", name)
		}

		for _, statement := range sent {
			for _, step := range explainOnSQLite(t, sqlite, statement) {
				if scan.MatchString(step) {
					t.Errorf("%s: %s\n%s", name, step, statement.Text)
				}
			}
		}
	}
}

// explainOnSQLite returns the steps of a statement's plan.
func explainOnSQLite(t *testing.T, db *storage.DB, statement storage.PreparedQuery) []string {
	t.Helper()

	text := regexp.MustCompile(`\$\d+`).ReplaceAllString(statement.Text, "?")
	text = strings.ReplaceAll(text, ` COLLATE "C"`, "") // see storage.DB.Bytewise
	text = regexp.MustCompile(` JOIN LATERAL \(SELECT \* (FROM (\w+) .*? LIMIT 1)\) AS \w+ ON true`).
		ReplaceAllString(text, ` JOIN $2 ON $2.id = (SELECT $2.id $1)`) // see storage.DB.JoinFirst

	args := make([]any, 0, len(statement.Args))
	for _, arg := range statement.Args {
		args = append(args, arg)
	}

	rows, err := storage.Select[struct {
		ID      int    `db:"id"`
		Parent  int    `db:"parent"`
		Notused int    `db:"notused"`
		Detail  string `db:"detail"`
	}](t.Context(), db.Reader(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("explaining %s: %v", text, err)
	}

	steps := make([]string, 0, len(rows))
	for _, row := range rows {
		steps = append(steps, strings.TrimSpace(row.Detail))
	}

	return steps
}
