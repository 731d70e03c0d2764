package storage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/accounts"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/notifications"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

// set is a group of tables that are migrated together, with the folder of their migrations.
type set struct {
	name   string
	folder string
	// keys maps each table to the columns by which the test sorts its rows.
	keys map[string]string
}

func sets() []set {
	return []set{
		{"operations", "operations", map[string]string{"operations": "id", "step_attempts": "operation_id", "timeline": "operation_id, seq"}},
		{"broker", "instances", map[string]string{"instances": "id"}},
		{"provisioner", "runtimes", map[string]string{"runtimes": "id", "idempotency_keys": "key"}},
	}
}

func (s set) files() fs.FS { return os.DirFS(filepath.Join(s.folder, "migrations")) }

// TestDataSurvivesEveryMigration migrates rows of version 1 to the newest version, reads them with the stores, and migrates
// them back.
func TestDataSurvivesEveryMigration(t *testing.T) {
	eachConfig(t, func(t *testing.T, config storage.Config) {
		keys := storagetest.Keys(t)

		for _, set := range sets() {
			migrateTo(t, config, set.name, set.files(), 1)
		}

		db := storagetest.Open(t, config)
		insertVersion1(t, db, keys)

		before := contents(t, db)

		for range 2 {
			readVersion1(t, openAll(t, db, keys))
			// The audit tables and the triggers of events depend on other tables, so their migrations are reverted first.
			migrateTo(t, config, "webhooks", os.DirFS(filepath.Join("webhooks", "migrations")), 0)
			migrateTo(t, config, "events", os.DirFS(filepath.Join("eventlog", "migrations", config.Driver)), 0)
			migrateTo(t, config, "audit", os.DirFS(filepath.Join("auditlog", "migrations", config.Driver)), 0)

			for _, set := range sets() {
				migrateTo(t, config, set.name, set.files(), 1)
			}

			if diff := cmp.Diff(before, contents(t, db)); diff != "" {
				t.Errorf("rows differ after migrating back to version 1: -want +got\n%s", diff)
			}
		}
	})
}

// insertVersion1 runs the statements of testdata/version1.sql. It replaces each {{place}} with an empty JSON object that is sealed
// for this place, which is the table, column and row of the value.
func insertVersion1(t *testing.T, db *storage.DB, keys *secret.Keyring) {
	t.Helper()

	script, err := os.ReadFile("testdata/version1.sql")
	if err != nil {
		t.Fatal(err)
	}

	sealed := regexp.MustCompile(`{{(.*?)}}`).ReplaceAllStringFunc(string(script), func(place string) string {
		return keys.Seal([]byte(`{}`), place[2:len(place)-2])
	})

	if err := db.InTx(t.Context(), func(tx storage.Tx) error {
		_, err := tx.ExecContext(t.Context(), sealed)

		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// contents returns all rows of all sets, by table.
func contents(t *testing.T, db *storage.DB) map[string][]map[string]any {
	t.Helper()

	all := map[string][]map[string]any{}

	for _, set := range sets() {
		for table, key := range set.keys {
			all[table] = rowsOf(t, db, fmt.Sprintf(`SELECT * FROM %s ORDER BY %s`, table, key))
		}
	}

	return all
}

func rowsOf(t *testing.T, db *storage.DB, query string) []map[string]any {
	t.Helper()

	rows, err := db.Reader().QueryxContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	var found []map[string]any

	for rows.Next() {
		row := map[string]any{}
		if err := rows.MapScan(row); err != nil {
			t.Fatal(err)
		}

		found = append(found, row)
	}

	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}

	return found
}

func openAll(t *testing.T, db *storage.DB, keys *secret.Keyring) stores {
	t.Helper()

	var err error

	all := stores{db: db, keys: keys}
	if all.operations, err = operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if all.instances, err = instances.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if all.bindings, err = bindings.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if all.endpoints, err = endpoints.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if all.leftovers, err = leftovers.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	if all.objects, err = outsideobjects.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if all.events, err = instanceevents.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	if all.notifications, err = notifications.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	if all.orchestrations, err = orchestrations.Open(t.Context(), db, all.operations); err != nil {
		t.Fatal(err)
	}

	if all.eventlog, err = eventlog.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	if all.webhooks, err = webhooks.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if all.accounts, err = accounts.Open(t.Context(), db, clock.RealClock{}); err != nil {
		t.Fatal(err)
	}

	if all.runtimes, err = runtimes.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if all.auditlog, err = auditlog.Open(t.Context(), db, time.Hour); err != nil {
		t.Fatal(err)
	}

	return all
}

// readVersion1 checks that the stores read the rows of version 1.
func readVersion1(t *testing.T, all stores) {
	t.Helper()

	ctx, reader := t.Context(), all.db.Reader()
	minute := func(minute, second int) time.Time { return time.Date(2026, 1, 2, 3, minute, second, 0, time.UTC) }

	want := process.Record{
		ID: "waits", Kind: "provision", InstanceID: "instance", Position: 1, State: process.InProgress, Description: "Operation created",
		Problem:        process.Problem{Message: "away", Reason: "err_away", Component: "provisioner"},
		FinishedStages: []string{"start"}, SkippedSteps: []string{"Tag"}, Stage: "create", Step: "Order", StepSince: minute(4, 7), WaitingFor: "event",
		CreatedAt: minute(4, 5).Add(6 * time.Microsecond), UpdatedAt: minute(5, 5), StartedAt: minute(4, 6), NextRun: minute(60, 0),
		Lease: process.Lease{Fence: 7},
	}

	got, err := all.operations.Get(ctx, reader, "waits")
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("operation: %v, -want +got\n%s", err, diff)
	}

	payload, err := all.operations.Payload(ctx, reader, "waits")
	if diff := cmp.Diff(json.RawMessage(`{}`), payload); diff != "" || err != nil {
		t.Errorf("payload: %v, -want +got\n%s", err, diff)
	}

	timeline, err := all.operations.Timeline(ctx, "waits")
	if diff := cmp.Diff([]process.Entry{
		{Began: want.CreatedAt, End: want.CreatedAt, Outcome: process.Accepted, Message: "provision"},
		{
			Stage: "create", Step: "Order", Attempt: 3, Began: minute(5, 5), End: minute(5, 6), Outcome: process.Retrying, Message: "away",
			NextRun: minute(60, 0),
		},
	}, timeline); diff != "" || err != nil {
		t.Errorf("timeline: %v, -want +got\n%s", err, diff)
	}

	ids := []string{}
	for _, of := range []string{"instance", "other"} {
		records, err := all.operations.OfInstance(ctx, reader, of)
		if err != nil {
			t.Error(err)
		}

		for _, record := range records {
			ids = append(ids, record.ID+" "+string(record.State))
		}
	}

	if diff := cmp.Diff([]string{"next pending", "waits in progress", "ended failed"}, ids); diff != "" {
		t.Errorf("operations of instances: -want +got\n%s", diff)
	}

	listed, err := all.instances.List(ctx, instances.Filter{Limit: 9})
	if err != nil || len(listed) != 1 || listed[0].Operation.ID != "next" || listed[0].Instance.RuntimeID != "runtime" {
		t.Errorf("instances: %+v, %v", listed, err)
	}

	if instance, err := all.instances.Get(ctx, reader, "instance"); err != nil || !cmp.Equal(instance.Request, environment.Request{}) {
		t.Errorf("instance: %+v, %v", instance, err)
	}

	if runtime, err := all.runtimes.Get(ctx, reader, "runtime"); err != nil || runtime.ShootName != "c-1" || string(runtime.Configuration) != `{}` {
		t.Errorf("runtime: %+v, %v", runtime, err)
	}

	if operation, err := all.runtimes.Recall(ctx, reader, "tenant", "key"); err != nil || operation != "waits" {
		t.Errorf("the idempotency key returns %q, %v", operation, err)
	}

	claimable(ctx, t, all, minute(60, 0))
}

// claimable checks that an engine can claim the waiting operation of version 1, and then reverts the claim.
func claimable(ctx context.Context, t *testing.T, all stores, at time.Time) {
	t.Helper()

	claimed, err := all.operations.Claim(ctx, process.Claim{Due: process.Due{Kind: "provision"}, Owner: "replica", Limit: 9, Now: at, Until: at.Add(time.Minute)})
	if err != nil || len(claimed) != 1 || claimed[0].Record.ID != "waits" || len(claimed[0].Attempts) != 1 || claimed[0].Attempts[0].Number != 3 {
		t.Fatalf("the waiting operation cannot be resumed: %+v, %v", claimed, err)
	}

	execute(t, all.db, `UPDATE operations SET lease_owner = '', lease_until = NULL, fence = 7 WHERE id = 'waits'`)
}
