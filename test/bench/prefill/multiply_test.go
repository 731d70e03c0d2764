package prefill_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/bench/prefill"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// TestMultiply checks that the stores read each copy as a separate instance, and that the sealed values contain the
// copy's names.
func TestMultiply(t *testing.T) {
	const count = 5

	config, keys := postgrestest.Database(t), storagetest.Keys(t)
	db := storagetest.Open(t, config)

	instanceStore, err := instances.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	operationStore, err := operations.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	model := environment.Instance{
		ID: "the-model", ShootName: "c-model", RuntimeID: "runtime-of-the-model", GlobalAccountID: "tenant-of-the-model",
		CreatedAt: time.Now(), UpdatedAt: time.Now(),
	}

	payload, err := json.Marshal(environment.Data{Instance: model, Provisioning: "operation-of-the-model"})
	if err != nil {
		t.Fatal(err)
	}

	if err := db.InTx(t.Context(), func(tx storage.Tx) error {
		if err := storagetest.Insert(t.Context(), tx, instanceStore, model); err != nil {
			return err
		}

		err := operationStore.Accept(t.Context(), tx, process.New{
			ID: "operation-of-the-model", Kind: environment.KindProvision, InstanceID: model.ID, Payload: payload, At: time.Now(),
		})

		return err
	}); err != nil {
		t.Fatal(err)
	}

	pool, err := sqlx.Open("postgres", fmt.Sprintf("host=%s port=%s user=%s password='%s' dbname=%s sslmode=disable",
		config.Host, config.Port, config.User, config.Password.Reveal(), config.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	copies := prefill.Multiply(t, pool, keys, count)
	if len(copies) != count {
		t.Fatalf("want %d instances, got %d", count, len(copies))
	}

	shoots := map[string]bool{}

	for _, each := range copies {
		instance, err := instanceStore.Get(t.Context(), db.Reader(), each.Instance)
		if err != nil {
			t.Fatal(err)
		}

		record, err := operationStore.Get(t.Context(), db.Reader(), each.Operation)
		if err != nil {
			t.Fatal(err)
		}

		payload, err := operationStore.Payload(t.Context(), db.Reader(), each.Operation)
		if err != nil {
			t.Fatal(err)
		}

		var data environment.Data
		if err := json.Unmarshal(payload, &data); err != nil {
			t.Fatalf("reading the payload of operation %s: %v", each.Operation, err)
		}

		if record.InstanceID != each.Instance || data.Instance.ID != each.Instance || data.Provisioning != each.Operation ||
			data.Instance.ShootName != instance.ShootName || data.Instance.RuntimeID != instance.RuntimeID {
			t.Errorf("inconsistent copy: instance %+v, operation of %s with %+v", instance, record.InstanceID, data)
		}

		timeline, err := operationStore.Timeline(t.Context(), each.Operation)
		if err != nil || len(timeline) != 1 {
			t.Errorf("operation %s: timeline %v, %v", each.Operation, timeline, err)
		}

		shoots[instance.ShootName] = true
	}

	if len(shoots) != count {
		t.Errorf("%d instances have %d distinct Shoot names", count, len(shoots))
	}
}
