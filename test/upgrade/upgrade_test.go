// Package upgrade_test checks the promises of docs/operator/upgrade.md. With the current stores, it reads every row of databases that the
// previous version of the services wrote; testdata/README.md describes how the databases were written. It also builds the programs of the
// previous version from the Git history, and runs them beside the current programs and after them.
package upgrade_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// storedKeys returns the secret keys of the stored databases for the given driver.
func storedKeys(t *testing.T, driver string) secret.String {
	t.Helper()

	key, err := os.ReadFile(filepath.Join("testdata", driver, "secret-keys"))
	if err != nil {
		t.Fatal(err)
	}

	return secret.String(key)
}

// restore restores a dump of a service's stored PostgreSQL database to an empty database. It calls edit to change the dump first.
func restore(t *testing.T, service string, edit func(dump string) string) (storage.Config, *storage.DB) {
	t.Helper()

	dump, err := os.ReadFile(filepath.Join("testdata", storage.DriverPostgres, service+".sql"))
	if err != nil {
		t.Fatal(err)
	}

	config := postgrestest.Database(t)
	db := storagetest.Open(t, config)

	if err := db.InTx(t.Context(), func(tx storage.Tx) error {
		_, err := tx.ExecContext(t.Context(), edit(string(dump)))

		return err
	}); err != nil {
		t.Fatal(err)
	}

	return config, db
}

// database opens a copy of the stored database of a service. It also returns the keyring that decrypts the sealed values.
func database(t *testing.T, driver, service string) (*storage.DB, *secret.Keyring) {
	t.Helper()

	keys, err := secret.ParseKeyring(storedKeys(t, driver))
	if err != nil {
		t.Fatal(err)
	}

	if driver == storage.DriverPostgres {
		_, db := restore(t, service, func(dump string) string { return dump })

		return db, keys
	}

	file, err := os.ReadFile(filepath.Join("testdata", driver, service+".sqlite"))
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), service+".db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}

	return storagetest.Open(t, storage.Config{Driver: storage.DriverSQLite, Path: path}), keys
}

func eachDriver(t *testing.T, test func(t *testing.T, driver string)) {
	t.Helper()

	for _, driver := range []string{storage.DriverSQLite, storage.DriverPostgres} {
		t.Run(driver, func(t *testing.T) { test(t, driver) })
	}
}

// must returns a function that returns the value, or ends the test if err is not nil. The two calls allow expressions such as
// must(store.Get(id))(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()

		if err != nil {
			tb.Fatal(err)
		}

		return value
	}
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

// operationHistory returns the sorted kinds and states of all operations. It calls check with the record and the payload of
// each operation, and fails the test if an operation has no timeline.
func operationHistory(t *testing.T, db *storage.DB, store *operations.Store, check func(record process.Record, payload []byte)) []string {
	t.Helper()

	var found []string

	for _, record := range must(store.List(t.Context(), operations.Filter{Limit: 100}))(t) {
		found = append(found, record.Kind+" "+string(record.State))
		check(record, must(store.Payload(t.Context(), db.Reader(), record.ID))(t))

		if entries := must(store.Timeline(t.Context(), record.ID))(t); len(entries) < 2 {
			t.Errorf("the timeline of %s %s has %d entries", record.Kind, record.ID, len(entries))
		}
	}

	slices.Sort(found)

	return found
}

// claimInterrupted claims the only operation in progress, as an engine does after the lease has expired.
func claimInterrupted(t *testing.T, store *operations.Store, kind string) process.Claimed {
	t.Helper()

	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

	claimed := storagetest.Claim(t, store, process.Claim{Owner: "today", Limit: 10, Now: now, Until: now.Add(time.Minute)}, kind)
	if len(claimed) != 1 || claimed[0].Unreadable != nil || len(claimed[0].Record.FinishedStages) == 0 {
		t.Fatalf("claimed %+v, want the %s that was in progress", claimed, kind)
	}

	return claimed[0]
}

func TestBrokerDatabase(t *testing.T) {
	eachDriver(t, func(t *testing.T, driver string) {
		db, keys := database(t, driver, "broker")
		operationStore := must(operations.Open(t.Context(), db, keys))(t)
		instanceStore := must(instances.Open(t.Context(), db, keys))(t)
		bindingStore := must(bindings.Open(t.Context(), db, keys))(t)
		entries := must(auditlog.Open(t.Context(), db, 0))(t)

		found := map[string]environment.Instance{}

		for _, listed := range must(instanceStore.List(t.Context(), instances.Filter{Limit: 100}))(t) {
			instance := must(instanceStore.Get(t.Context(), db.Reader(), listed.Instance.ID))(t)
			found[instance.ID] = instance

			if instance.GlobalAccountID != "my-organization" || instance.ShootName == "" || instance.CreatedAt.IsZero() ||
				instance.Request.Cluster.MachineType == "" || (instance.RuntimeID == "") != instance.Suspended {
				t.Errorf("instance %s is incomplete: %+v", instance.ID, instance)
			}
		}

		equal(t, "instances", []string{"ready", "running", "suspended", "updated"}, slices.Sorted(maps.Keys(found)))
		equal(t, "updated machine type", "m5.xlarge", found["updated"].Request.Cluster.MachineType)
		equal(t, "updated maximum of nodes", 7, found["updated"].Request.Cluster.AutoScalerMax)
		equal(t, "plan of the suspended instance", "trial", found["suspended"].PlanName)

		equal(t, "operations", []string{
			"bind succeeded", "bind succeeded", "bind succeeded", "deprovision succeeded", "provision in progress", "provision succeeded",
			"provision succeeded", "provision succeeded", "provision succeeded", "suspend succeeded", "unbind succeeded", "update succeeded",
		}, operationHistory(t, db, operationStore, func(record process.Record, payload []byte) {
			var data environment.Data
			if err := json.Unmarshal(payload, &data); err != nil {
				t.Fatalf("payload of %s %s: %v", record.Kind, record.ID, err)
			}

			bound := data.Binding.ID != ""
			if data.Instance.ID == "" || bound != (record.Kind == environment.KindBind || record.Kind == environment.KindUnbind) ||
				(data.Update != nil) != (record.Kind == environment.KindUpdate || record.Kind == environment.KindSuspend) {
				t.Errorf("payload of %s %s is incomplete: %+v", record.Kind, record.ID, data)
			}
		}))

		equal(t, "resumed instance", "running", claimInterrupted(t, operationStore, environment.KindProvision).Record.InstanceID)

		bound := must(bindingStore.OfInstance(t.Context(), "ready"))(t)
		equal(t, "bindings", 2, len(bound))

		for _, each := range bound {
			binding := must(bindingStore.Get(t.Context(), db.Reader(), "ready", each.BindingID))(t)
			if binding.State != environment.BindingReady || binding.Access.Kubeconfig == "" || binding.RuntimeID != found["ready"].RuntimeID {
				t.Errorf("binding %s is incomplete: %+v", each.BindingID, binding)
			}
		}

		equal(t, "audit log entries", 12, len(must(entries.List(t.Context(), auditlog.Filter{Limit: 100}))(t)))

		if cursor := must(instanceStore.FeedCursor(t.Context()))(t); cursor == "" {
			t.Error("the cursor of the Provisioner's change feed is empty")
		}
	})
}

func TestProvisionerDatabase(t *testing.T) {
	eachDriver(t, func(t *testing.T, driver string) {
		db, keys := database(t, driver, "provisioner")
		operationStore := must(operations.Open(t.Context(), db, keys))(t)
		runtimeStore := must(runtimes.Open(t.Context(), db, keys))(t)
		entries := must(auditlog.Open(t.Context(), db, 0))(t)

		machineTypes, deleted := map[string]int{}, 0

		equal(t, "operations", []string{
			"DeprovisionNoInstall succeeded", "DeprovisionNoInstall succeeded", "ProvisionNoInstall in progress", "ProvisionNoInstall succeeded",
			"ProvisionNoInstall succeeded", "ProvisionNoInstall succeeded", "ProvisionNoInstall succeeded", "UpgradeShoot succeeded",
		}, operationHistory(t, db, operationStore, func(record process.Record, payload []byte) {
			var data operation.Data
			if err := json.Unmarshal(payload, &data); err != nil {
				t.Fatalf("payload of %s %s: %v", record.Kind, record.ID, err)
			}

			runtime := must(runtimeStore.Get(t.Context(), db.Reader(), record.InstanceID))(t)
			if data.Runtime.ID != runtime.ID || data.Registered != operation.Provisions(record.Kind) || runtime.Tenant != "my-organization" || runtime.ShootName == "" {
				t.Errorf("runtime of %s %s is incomplete: %s of %s", record.Kind, record.ID, runtime.ShootName, runtime.Tenant)
			}

			ordered := must(data.Order())(t)
			equal(t, "name of the ordered Shoot", runtime.ShootName, ordered.ClusterConfig.GardenerConfig.Name)

			if record.ID != runtime.ProvisionedBy {
				return
			}

			now := must(operation.OrderOf(runtime))(t).ClusterConfig.GardenerConfig
			machineTypes[now.MachineType]++

			if now.MachineType == "m5.xlarge" {
				equal(t, "maximum of nodes after the update", 7, now.AutoScalerMax)
			}

			if !runtime.DeletedAt.IsZero() {
				deleted++
			}
		}))

		equal(t, "machine types", map[string]int{"m6i.large": 3, "m5.xlarge": 1, "Standard_D4s_v5": 1}, machineTypes)
		equal(t, "deleted runtimes", 2, deleted)

		claimInterrupted(t, operationStore, operation.KindProvisionNoInstall)
		equal(t, "audit log entries", 16, len(must(entries.List(t.Context(), auditlog.Filter{Limit: 100}))(t)))
	})
}
