package service_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// TestOperationsThatTheProvisionerNeedsStay runs the retention on operations that are all old enough to be removed.
func TestOperationsThatTheProvisionerNeedsStay(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		keys := storagetest.Keys(t)

		ops, err1 := operations.Open(t.Context(), db, keys)
		rows, err2 := runtimes.Open(t.Context(), db, keys)
		entries, err3 := auditlog.Open(t.Context(), db, time.Hour)

		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}

		ops.KeepFor(time.Hour)

		tx := func(work func(tx storage.Tx) error) {
			t.Helper()

			if err := db.InTx(t.Context(), work); err != nil {
				t.Fatal(err)
			}
		}

		for _, id := range []string{"gone", "there", "failed"} {
			tx(func(tx storage.Tx) error {
				_, err := rows.Insert(t.Context(), tx, runtimes.Runtime{ID: id, Tenant: "t", ShootName: "shoot-" + id, Configuration: []byte(`{}`), CreatedAt: at})

				return err
			})
		}

		if err := rows.MarkDeleted(t.Context(), "gone", at); err != nil {
			t.Fatal(err)
		}

		for _, each := range []struct {
			id, runtime, kind string
			state             process.State
		}{
			{"g1", "gone", "Provision", process.Succeeded},
			{"g2", "gone", "Deprovision", process.Succeeded},
			{"t1", "there", "ProvisionNoInstall", process.Succeeded},
			{"t2", "there", "UpgradeShoot", process.Succeeded},
			{"t3", "there", "Deprovision", process.Failed},
			{"t4", "there", "UpgradeShoot", process.Succeeded},
			{"t5", "there", "UpgradeShoot", process.Succeeded},
			{"e1", "erased", "Provision", process.Failed}, // the account was erased, and with it the row of the runtime
			{"f1", "failed", "UpgradeShoot", process.Failed},
			{"f2", "failed", "UpgradeShoot", process.Failed},
		} {
			at = at.Add(time.Minute)

			tx(func(tx storage.Tx) error {
				_, err := rows.Remember(t.Context(), tx, "t", "key of "+each.id, each.id, at)

				return errors.Join(err, ops.InsertEnded(t.Context(), tx, process.New{
					ID: each.id, Kind: each.kind, InstanceID: each.runtime, Payload: []byte(`{}`), At: at,
				}, operations.Ending{State: each.state, At: at, Began: at}))
			})
		}

		// Director does not know that f1 has failed.
		tx(func(tx storage.Tx) error {
			return rows.AcceptRegistration(t.Context(), tx, runtimes.Registration{Tenant: "t", Label: "l", RuntimeID: "failed", OperationID: "f1"}, at)
		})

		clock := clocktesting.NewFakeClock(at.AddDate(1, 0, 0))
		chainer := entries.Chain(auditlog.ChainOptions{Clock: clock, Log: logging.Discard(), Metrics: prometheus.NewRegistry()})

		if err := errors.Join(
			ops.Retention(time.Hour, clock, logging.Discard()).Sweep(t.Context()), chainer.Pass(t.Context()),
			entries.OperationRetention(service.NewRemoval(rows), clock, logging.Discard()).Sweep(t.Context()),
		); err != nil {
			t.Fatal(err)
		}

		for query, want := range map[string]string{
			`SELECT id FROM operations ORDER BY id`:                           "f1 f2 t1 t3 t5",
			`SELECT id FROM runtimes ORDER BY id`:                             "failed there",
			`SELECT operation_id FROM idempotency_keys ORDER BY operation_id`: "f1 f2 t1 t3 t5",
		} {
			found, err := storage.Select[string](t.Context(), db.Reader(), query)
			if diff := cmp.Diff(want, strings.Join(found, " ")); diff != "" || err != nil {
				t.Errorf("%s: %v -want +got\n%s", query, err, diff)
			}
		}
	})
}
