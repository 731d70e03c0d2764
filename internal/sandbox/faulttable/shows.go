package faulttable

import (
	"os"
	"path/filepath"
	"testing"
)

// Shows fails the test unless the table says that the fault in the row causes the message text. table is the name of the table,
// and test is the name of the sub-test: ROW or ROW/PART. An empty text means that the fault causes no message.
func Shows(tb testing.TB, table, test, text string) {
	tb.Helper()

	tables, err := Read(root(tb))
	if err != nil {
		tb.Fatal(err)
	}

	row, found := tables[table].Find(test)
	if !found {
		tb.Fatalf("%s has no row %q", table, test)
	}

	if err := Matches(tables[table].Cell(row, Shown), test, text); err != nil {
		tb.Errorf("%s, row %q: %v", table, row.Name, err)
	}
}

// root returns the repository root: the closest parent folder of the test that contains the integration pages.
func root(tb testing.TB) string {
	tb.Helper()

	folder, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}

	for {
		if _, err := os.Stat(filepath.Join(folder, Folder)); err == nil {
			return folder
		}

		parent := filepath.Dir(folder)
		if parent == folder {
			tb.Fatalf("no parent folder contains %s", Folder)
		}

		folder = parent
	}
}
