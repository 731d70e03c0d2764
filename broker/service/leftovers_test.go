package service_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// openTables opens the stores that effects write.
func openTables(t *testing.T, db *storage.DB) service.Tables {
	t.Helper()

	keys, errs := storagetest.Keys(t), make([]error, 6)
	tables := service.Tables{DB: db}

	tables.Operations, errs[0] = operations.Open(t.Context(), db, keys)
	tables.Instances, errs[1] = instances.Open(t.Context(), db, keys)
	tables.Bindings, errs[2] = bindings.Open(t.Context(), db, keys)
	tables.Leftovers, errs[3] = leftovers.Open(t.Context(), db)
	tables.Objects, errs[4] = outsideobjects.Open(t.Context(), db, keys)
	tables.Events, errs[5] = instanceevents.Open(t.Context(), db)

	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}

	return tables
}

// remains are the rows of instance one and of its leftovers.
type remains struct {
	Instances int
	// Steps are the steps of the leftovers. Objects are the keys of the recorded objects, with the state of each.
	Steps   [][]string
	Objects map[string]string
}

// hold accepts and claims an operation with a random ID.
func hold(t *testing.T, tables service.Tables, kind, key string) process.Record {
	t.Helper()

	now := time.Now()
	if err := tables.DB.InTx(t.Context(), func(tx storage.Tx) error {
		return tables.Operations.Accept(t.Context(), tx, process.New{ID: uuid.NewString(), Kind: kind, InstanceID: key, Payload: []byte(`{}`), At: now})
	}); err != nil {
		t.Fatal(err)
	}

	return storagetest.Claim(t, tables.Operations, process.Claim{Owner: "holder", Limit: 1, Now: now, Until: now.Add(time.Hour)}, kind)[0].Record
}

// effect ends an operation of the given kind successfully, with the given effect, and returns its record.
func effect(t *testing.T, tables service.Tables, kind, key string, made func(process.Record) process.Effect) process.Record {
	t.Helper()

	record := hold(t, tables, kind, key)
	progress := process.Progress{Record: record, Release: true, Now: time.Now(), Effect: made(record)}
	progress.Record.State, progress.Record.Payload = process.Succeeded, json.RawMessage(`{}`)

	if _, err := tables.Operations.Save(t.Context(), progress); err != nil {
		t.Fatal(err)
	}

	return record
}

func remainsOf(t *testing.T, tables service.Tables, keys ...string) remains {
	t.Helper()

	found := remains{Objects: map[string]string{}}

	exists, err := tables.Instances.Exists(t.Context(), tables.DB.Reader(), "one")
	if err != nil {
		t.Fatal(err)
	}

	if exists {
		found.Instances++
	}

	listed, err := tables.Leftovers.List(t.Context(), leftovers.Filter{Limit: 9})
	if err != nil {
		t.Fatal(err)
	}

	for _, each := range listed {
		found.Steps = append(found.Steps, each.Leftover.Steps)
	}

	objects, err := tables.Objects.OfInstances(t.Context(), append(keys, "one"))
	if err != nil {
		t.Fatal(err)
	}

	for _, object := range objects {
		owner := "leftover"
		if object.InstanceID == "one" {
			owner = "one"
		}

		found.Objects[owner+" "+object.System] = string(object.State)
	}

	return found
}

// TestLeftovers deletes an instance without completing two steps, creates another one with the same ID, and cleans up.
func TestLeftovers(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		tables := openTables(t, db)
		rows := service.NewRows(tables, clock.RealClock{})
		now := storage.At(time.Now()).Time

		instance := environment.Instance{ID: "one", PlanName: "aws", ShootName: "c-1", SubAccountID: "sub", RuntimeID: "runtime", CreatedAt: now, UpdatedAt: now}

		insert := func() {
			t.Helper()

			if err := db.InTx(t.Context(), func(tx storage.Tx) error { return storagetest.Insert(t.Context(), tx, tables.Instances, instance) }); err != nil {
				t.Fatal(err)
			}
		}

		record := func(key, system string, state environment.OutsideState) {
			t.Helper()

			by := hold(t, tables, environment.KindUpdate, key)
			if err := tables.Objects.Set(t.Context(), by, environment.OutsideObject{InstanceID: key, System: system, Kind: "k", Key: "sub", State: state}, now); err != nil {
				t.Fatal(err)
			}

			end := process.Progress{Record: by, Release: true, Now: now}
			end.Record.State, end.Record.Payload = process.Succeeded, json.RawMessage(`{}`)

			if _, err := tables.Operations.Save(t.Context(), end); err != nil {
				t.Fatal(err)
			}
		}

		want := func(when string, want remains, keys ...string) {
			t.Helper()

			if diff := cmp.Diff(want, remainsOf(t, tables, keys...)); diff != "" {
				t.Fatalf("%s, -want +got:\n%s", when, diff)
			}
		}

		insert()
		record("one", environment.SystemEDP, environment.OutsideLeftOver)
		record("one", environment.SystemIAS, environment.OutsideCreated) // its system is turned off, so no step has removed it

		deletion := effect(t, tables, environment.KindDeprovision, "one", func(by process.Record) process.Effect {
			return rows.Delete(by, instance, []string{"Remove_Runtime", "EDP_Deregistration"})
		})
		key := environment.LeftoverKey("one", deletion.ID)
		left := remains{
			Steps:   [][]string{{"EDP_Deregistration", "IAS_Deregistration", "Remove_Runtime"}},
			Objects: map[string]string{"leftover edp": "left over", "leftover ias": "created"},
		}
		want("after the deletion", left, key)

		instance.ShootName = "c-2"
		insert()
		record("one", environment.SystemEDP, environment.OutsideCreated)

		both := left
		both.Instances = 1
		both.Objects = map[string]string{"leftover edp": "left over", "leftover ias": "created", "one edp": "created"}
		want("in the new life", both, key)

		effect(t, tables, environment.KindCleanup, key, func(by process.Record) process.Effect {
			if err := tables.Objects.Remove(t.Context(), by, environment.OutsideObject{InstanceID: key, System: environment.SystemEDP, Kind: "k"}); err != nil {
				t.Fatal(err)
			}

			return rows.Cleaned(by, nil)
		})

		both.Steps = [][]string{{"IAS_Deregistration"}}
		delete(both.Objects, "leftover edp")
		want("an object is still recorded, because its system is turned off", both, key)

		effect(t, tables, environment.KindCleanup, key, func(by process.Record) process.Effect {
			if err := tables.Objects.Remove(t.Context(), by, environment.OutsideObject{InstanceID: key, System: environment.SystemIAS, Kind: "k"}); err != nil {
				t.Fatal(err)
			}

			return rows.Cleaned(by, nil)
		})
		want("all steps are completed", remains{Instances: 1, Objects: map[string]string{"one edp": "created"}}, key)

		effect(t, tables, environment.KindDeprovision, "one", func(by process.Record) process.Effect {
			if err := tables.Objects.Remove(t.Context(), by, environment.OutsideObject{InstanceID: "one", System: environment.SystemEDP, Kind: "k"}); err != nil {
				t.Fatal(err)
			}

			return rows.Delete(by, instance, nil)
		})
		want("a complete deletion leaves nothing", remains{Objects: map[string]string{}}, key)
	})
}

// TestSuspensionLeavesARuntime checks that a suspended instance keeps its row and its objects, and that its runtime is a leftover.
func TestSuspensionLeavesARuntime(t *testing.T) {
	db := storagetest.SQLite(t)
	tables := openTables(t, db)
	instance := environment.Instance{ID: "one", PlanName: "trial", ShootName: "c-1", RuntimeID: "runtime", CreatedAt: time.Now(), UpdatedAt: time.Now()}

	if err := db.InTx(t.Context(), func(tx storage.Tx) error { return storagetest.Insert(t.Context(), tx, tables.Instances, instance) }); err != nil {
		t.Fatal(err)
	}

	effect(t, tables, environment.KindSuspend, "one", func(by process.Record) process.Effect {
		return service.NewRows(tables, clock.RealClock{}).Suspend(by, instance, nil, []string{"Remove_Runtime"})
	})

	listed, err := tables.Leftovers.List(t.Context(), leftovers.Filter{InstanceID: "one", Limit: 9})
	if err != nil || len(listed) != 1 || listed[0].Leftover.Instance.RuntimeID != "runtime" || listed[0].Leftover.Kind != environment.KindSuspend {
		t.Fatalf("leftovers %+v, %v", listed, err)
	}

	suspended, err := tables.Instances.Get(t.Context(), db.Reader(), "one")
	if err != nil || !suspended.Suspended || suspended.RuntimeID != "" {
		t.Errorf("the instance is %+v, %v", suspended, err)
	}
}

// TestRuntimeUser checks which instances use the runtime of a leftover.
func TestRuntimeUser(t *testing.T) {
	former := environment.Instance{ID: "one", ShootName: "c-1", RuntimeID: "runtime"}

	cases := map[string]struct {
		reason             string
		kind               string // of the newest operation of the instance
		state              process.State
		shootName, runtime string
		want               string
		undecided          bool
	}{
		"resumed":           {"the Provisioner has returned the former runtime", environment.KindResume, process.Succeeded, "c-1", "runtime", "one", false},
		"restored":          {"the rows of the instance were restored", environment.KindProvision, process.Succeeded, "c-1", "runtime", "one", false},
		"resumption failed": {"the next resumption uses the runtime", environment.KindResume, process.Failed, "c-1", "runtime", "one", false},
		"suspending":        {"the suspension removes the runtime itself", environment.KindSuspend, process.InProgress, "c-1", "runtime", "one", false},
		"suspended":         {"the instance has no runtime", environment.KindSuspend, process.Succeeded, "c-1", "", "", false},
		"outdated":          {"a suspended instance has no runtime, whatever its row says", environment.KindSuspend, process.Succeeded, "c-1", "runtime", "", false},
		"resuming":          {"the order may return the former runtime", environment.KindResume, process.InProgress, "c-1", "", "", true},
		"other runtime":     {"the instance got another runtime", environment.KindResume, process.Succeeded, "c-1", "runtime-2", "", false},
		"other life":        {"a new instance has the ID of the deleted one", environment.KindProvision, process.Succeeded, "c-2", "runtime-2", "", false},
	}

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		tables := openTables(t, db)
		rows := service.NewRows(tables, clock.RealClock{})

		if user, err := rows.RuntimeUser(t.Context(), former); user != "" || err != nil {
			t.Errorf("the instance is gone: got %q, %v", user, err)
		}

		for name, c := range cases {
			now := time.Now()
			instance := environment.Instance{ID: "one", PlanName: "trial", ShootName: c.shootName, RuntimeID: c.runtime, CreatedAt: now, UpdatedAt: now}

			if err := db.InTx(t.Context(), func(tx storage.Tx) error { return storagetest.Insert(t.Context(), tx, tables.Instances, instance) }); err != nil {
				t.Fatal(err)
			}

			record := hold(t, tables, c.kind, "one")
			end := func(state process.State) {
				progress := process.Progress{Record: record, Release: true, Now: time.Now()}
				progress.Record.State, progress.Record.Payload = state, json.RawMessage(`{}`)

				if _, err := tables.Operations.Save(t.Context(), progress); err != nil {
					t.Fatal(err)
				}
			}

			if c.state != process.InProgress {
				end(c.state)
			}

			user, err := rows.RuntimeUser(t.Context(), former)
			if user != c.want || failure.Is(err, failure.Waiting) != c.undecided || !c.undecided && err != nil {
				t.Errorf("%s: %s: got %q, %v", name, c.reason, user, err)
			}

			if c.state == process.InProgress {
				end(process.Succeeded)
			}

			if err := db.InTx(t.Context(), func(tx storage.Tx) error { return tables.Instances.Delete(t.Context(), tx, instance) }); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestReused checks that a leftover whose runtime is in use ends, and that its objects belong to the instance again.
func TestReused(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		tables := openTables(t, db)
		rows := service.NewRows(tables, clock.RealClock{})
		now := time.Now()
		instance := environment.Instance{ID: "one", PlanName: "aws", ShootName: "c-1", RuntimeID: "runtime", CreatedAt: now, UpdatedAt: now}

		insert := func() {
			t.Helper()

			if err := db.InTx(t.Context(), func(tx storage.Tx) error {
				if err := storagetest.Insert(t.Context(), tx, tables.Instances, instance); err != nil {
					return err
				}

				return tables.Objects.Insert(t.Context(), tx, environment.OutsideObject{
					InstanceID: "one", System: environment.SystemEDP, Kind: "k", Key: "sub", State: environment.OutsideCreated,
				}, now)
			}); err != nil {
				t.Fatal(err)
			}
		}

		insert()

		deletion := effect(t, tables, environment.KindDeprovision, "one", func(by process.Record) process.Effect {
			return rows.Delete(by, instance, []string{"Remove_Runtime"})
		})
		key := environment.LeftoverKey("one", deletion.ID)

		if err := db.InTx(t.Context(), func(tx storage.Tx) error {
			for system, state := range map[string]environment.OutsideState{
				environment.SystemReconciler: environment.OutsideLeftOver, environment.SystemAvS: environment.OutsideCreating,
			} {
				if err := tables.Objects.Insert(t.Context(), tx, environment.OutsideObject{
					InstanceID: key, System: system, Kind: "k", Key: "runtime", State: state,
				}, now); err != nil {
					return err
				}
			}

			return nil
		}); err != nil {
			t.Fatal(err)
		}

		abandoned := hold(t, tables, environment.KindCleanup, key)
		progress := process.Progress{Record: abandoned, Release: true, Now: now, Effect: rows.Reused(abandoned, "one")}
		progress.Record.State, progress.Record.Payload = process.Succeeded, json.RawMessage(`{}`)

		if _, err := tables.Operations.Save(t.Context(), progress); !failure.Is(err, failure.Transient) {
			t.Errorf("the instance is gone, so nothing uses the runtime: got %v", err)
		}

		insert()

		if _, err := tables.Operations.Save(t.Context(), progress); err != nil {
			t.Fatal(err)
		}

		want := remains{Instances: 1, Objects: map[string]string{"one edp": "created", "one reconciler": "created", "one avs": "creating"}}
		if diff := cmp.Diff(want, remainsOf(t, tables, key)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
