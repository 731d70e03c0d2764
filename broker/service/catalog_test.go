package service_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestChangedCatalogFilesAreAudited(t *testing.T) {
	t.Parallel()

	database := storagetest.Postgres(t) // a SQLite file has one process
	config := usable(t)
	config.Database = replica.Database{
		Driver: database.Driver, User: database.User, Password: database.Password, Host: database.Host, Port: database.Port,
		Name: database.Name, SSLMode: database.SSLMode, SecretKeys: config.Database.SecretKeys,
	}
	config.Catalog.Dir = t.TempDir()

	if err := os.CopyFS(config.Catalog.Dir, resources.Catalog()); err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(config.Catalog.Dir, "catalog.yaml")

	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	running(t, config, func(string, lines) {
		store, err := auditlog.Open(t.Context(), storagetest.Open(t, database), 0)
		if err != nil {
			t.Fatal(err)
		}

		// change writes the file, waits until the audit log has number entries of reloads, and returns the newest.
		change := func(content string, number int) auditlog.Entry {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}

			for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
				entries, err := store.List(t.Context(), auditlog.Filter{Action: auditlog.ActionCatalog, Limit: 10})
				if err != nil {
					t.Fatal(err)
				}

				if len(entries) == number {
					return entries[0]
				}
			}

			t.Fatalf("want exactly one audit entry for each of %d changes", number)

			return auditlog.Entry{}
		}

		refused := change("plans: nothing", 1)
		if refused.Status != http.StatusUnprocessableEntity || !strings.Contains(refused.Reason, "catalog.yaml") {
			t.Errorf("the entry of invalid files is %+v", refused)
		}

		taken := change(string(good)+"# again\n", 2)
		if taken.Status != http.StatusOK || taken.Reason == "" || taken.By != (auditlog.Actor{}) {
			t.Errorf("the entry of valid files is %+v", taken)
		}
	})
}
