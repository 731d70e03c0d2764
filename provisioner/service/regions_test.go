package service

import (
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestRegionsOfOlderRows checks that rows of an older version, which have no provider and no region, are completed from their
// configuration, and that an unreadable configuration is reported.
func TestRegionsOfOlderRows(t *testing.T) {
	db := storagetest.SQLite(t)

	rows, err := runtimes.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	order, err := spec.Encode(spec.Runtime{
		ClusterConfig: &spec.ClusterConfig{GardenerConfig: &spec.Cluster{Name: "c-1", Provider: "aws", Region: "eu-central-1"}},
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := db.InTx(t.Context(), func(tx storage.Tx) error {
		for id, configuration := range map[string][]byte{"damaged": []byte(`{"version":99}`), "empty": []byte("{}"), "usual": order} {
			if _, err := rows.Insert(t.Context(), tx, runtimes.Runtime{
				ID: id, ShootName: id, Configuration: configuration, CreatedAt: time.Now(),
			}); err != nil {
				return err
			}
		}

		_, err := storage.Exec(t.Context(), tx, `UPDATE runtimes SET provider = NULL, region = NULL`)

		return err
	}); err != nil {
		t.Fatal(err)
	}

	err = Regions{Runtimes: rows, Log: logging.Discard()}.complete(t.Context())
	if err == nil || !strings.Contains(err.Error(), "1 failed") {
		t.Errorf("an unreadable configuration is reported: got %v", err)
	}

	usual, err := rows.Get(t.Context(), rows.Reader(), "usual")
	if err != nil || usual.Provider != "aws" || usual.Region != "eu-central-1" {
		t.Errorf("the row is completed from its configuration: got %+v, %v", usual, err)
	}

	left, err := rows.WithoutRegion(t.Context(), "", regionBatch)
	if err != nil || len(left) != 1 || left[0] != "damaged" {
		t.Errorf("a configuration without a cluster is done: got %v, %v", left, err)
	}
}
