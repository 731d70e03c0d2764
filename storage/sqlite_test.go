package storage_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// sqliteFile returns the configuration of a new SQLite file with a table of several pages.
func sqliteFile(t *testing.T) storage.Config {
	t.Helper()

	config := storage.Config{Driver: storage.DriverSQLite, Path: filepath.Join(t.TempDir(), "test.db")}

	db, err := storage.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}

	execute(t, db, `CREATE TABLE content (id INTEGER PRIMARY KEY, text TEXT NOT NULL)`, `CREATE INDEX content_text ON content (text)`,
		`WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 1000)
			INSERT INTO content SELECT n, hex(randomblob(100)) FROM number`)

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	return config
}

func TestSQLiteFileHasOneReplica(t *testing.T) {
	config := sqliteFile(t)

	first, err := storage.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := storage.Open(t.Context(), config); err == nil ||
		!strings.Contains(err.Error(), config.Path+": another process uses the file: with SQLite, a service can have only one replica") {
		t.Errorf("a second replica starts, or the error does not explain the problem: %v", err)
	}

	execute(t, first, `DELETE FROM content`) // the attempt does not disturb the first replica

	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	storagetest.Open(t, config)
}

func TestSQLiteFilesBelongToTheirOwner(t *testing.T) {
	config := sqliteFile(t)

	// An earlier release created the files with the default mode.
	for _, name := range []string{config.Path, config.Path + ".lock"} {
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	execute(t, storagetest.Open(t, config), `DELETE FROM content`)

	files, err := filepath.Glob(config.Path + "*")
	if err != nil || len(files) != 4 {
		t.Fatalf("want the file, its log, its shared memory and its lock, got %v, %v", files, err)
	}

	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != fs.FileMode(0o600) {
			t.Errorf("%s has the mode %v, want 0600: %v", name, info.Mode(), err)
		}
	}
}

func TestDamagedSQLiteFileIsRejected(t *testing.T) {
	const page = 4096

	cases := map[string]struct {
		reason string
		damage func(content []byte) []byte
	}{
		"page":   {"a page was overwritten", func(content []byte) []byte { copy(content[20*page:], bytes.Repeat([]byte{7}, page)); return content }},
		"half":   {"a copy was interrupted", func(content []byte) []byte { return content[:len(content)/page/2*page] }},
		"header": {"the file is not a database", func(content []byte) []byte { copy(content, "something else"); return content }},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := sqliteFile(t)

			content, err := os.ReadFile(config.Path)
			if err != nil {
				t.Fatal(err)
			}

			if err := os.WriteFile(config.Path, c.damage(content), 0o600); err != nil {
				t.Fatal(err)
			}

			for range 2 { // the failed attempt keeps no lock
				if _, err := storage.Open(t.Context(), config); err == nil ||
					!strings.Contains(err.Error(), "the file "+config.Path+" is damaged, or not a SQLite database: check the path, or restore the file from a backup: ") {
					t.Errorf("%s: the database is opened, or the error does not explain the problem: %v", c.reason, err)
				}
			}
		})
	}
}
