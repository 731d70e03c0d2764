package service_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestLastProvisioning checks which operation provides the data of the runtime for a deletion. With the data of a different
// operation, the deletion would leave a runtime behind.
func TestLastProvisioning(t *testing.T) {
	ordered := func(key string) environment.Data {
		return environment.Data{Provisioning: key, Ordered: true, Instance: environment.Instance{ShootName: "c-one"}}
	}

	type past struct {
		kind  string
		state process.State
		data  environment.Data
	}

	made := past{environment.KindProvision, process.Succeeded, ordered("p")}
	suspended := past{environment.KindSuspend, process.Succeeded, environment.Data{}}

	cases := map[string]struct {
		reason  string
		runtime string
		past    []past // oldest first
		want    environment.Data
	}{
		"made":             {"a single provisioning", "r", []past{made}, withRuntime(ordered("p"), "r")},
		"answer lost":      {"the order may have arrived", "", []past{made}, ordered("p")},
		"suspended":        {"its runtime was removed", "", []past{made, suspended}, environment.Data{}},
		"suspension ended": {"a deletion canceled it", "", []past{made, {environment.KindSuspend, process.Canceled, environment.Data{}}}, ordered("p")},
		"resumed":          {"the newest provisioning is used", "r2", []past{made, suspended, {environment.KindResume, process.Succeeded, ordered("r")}}, withRuntime(ordered("r"), "r2")},
		"resumption not begun": {
			"the provisioning before it ordered a runtime", "",
			[]past{made, suspended, {environment.KindResume, process.Failed, ordered("r")}, {environment.KindResume, process.Canceled, environment.Data{Provisioning: "s"}}},
			ordered("r"),
		},
		"resumption before its order": {
			"nothing was ordered after the suspension", "",
			[]past{made, suspended, {environment.KindResume, process.Canceled, environment.Data{Provisioning: "s"}}},
			environment.Data{Provisioning: "s"},
		},
		"ID used before": {
			"the ID was used before", "",
			[]past{made, {environment.KindDeprovision, process.Succeeded, environment.Data{}}, {environment.KindProvision, process.Canceled, environment.Data{Provisioning: "q"}}},
			environment.Data{Provisioning: "q"},
		},
		"updated": {"updates do not order runtimes", "r", []past{made, {environment.KindUpdate, process.Succeeded, environment.Data{}}}, withRuntime(ordered("p"), "r")},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			db := storagetest.SQLite(t)
			keys := storagetest.Keys(t)

			ops, err := operations.Open(t.Context(), db, keys)
			if err != nil {
				t.Fatal(err)
			}

			rows, err := instances.Open(t.Context(), db, keys)
			if err != nil {
				t.Fatal(err)
			}

			now := time.Now()

			if err := db.InTx(t.Context(), func(tx storage.Tx) error {
				return storagetest.Insert(t.Context(), tx, rows, environment.Instance{
					ID: "one", ShootName: "c-one", RuntimeID: c.runtime, CreatedAt: now, UpdatedAt: now,
				})
			}); err != nil {
				t.Fatal(err)
			}

			for i, past := range c.past {
				ended(t, db, ops, string(rune('a'+i)), past.kind, past.state, past.data)
			}

			got, err := service.NewRows(service.Tables{DB: db, Operations: ops, Instances: rows}, clock.RealClock{}).LastProvisioning(t.Context(), "one")
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v -want +got\n%s", c.reason, err, diff)
			}
		})
	}
}

// TestLastProvisioningWithoutItsKey checks the error about data whose key was removed from the configuration. The key can be added again, so the
// error is transient.
func TestLastProvisioningWithoutItsKey(t *testing.T) {
	db := storagetest.SQLite(t)
	keys := storagetest.Keys(t)

	ops, err := operations.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	rows, err := instances.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	ended(t, db, ops, "a", environment.KindProvision, process.Succeeded, environment.Data{Ordered: true})

	if _, err := storage.Exec(t.Context(), db.Writer(), `UPDATE operations SET payload = 'lost:' || payload`); err != nil {
		t.Fatal(err)
	}

	_, err = service.NewRows(service.Tables{DB: db, Operations: ops, Instances: rows}, clock.RealClock{}).LastProvisioning(t.Context(), "one")
	if !failure.Is(err, failure.Transient) || !strings.Contains(err.Error(), "its key is not in APP_DATABASE_SECRET_KEYS") {
		t.Errorf("got %v", err)
	}
}

func withRuntime(data environment.Data, id string) environment.Data {
	data.Instance.RuntimeID = id

	return data
}

// ended stores an operation that has ended.
func ended(t *testing.T, db *storage.DB, ops *operations.Store, id, kind string, state process.State, data environment.Data) {
	t.Helper()

	payload, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}

	now := time.Now()

	if err := db.InTx(t.Context(), func(tx storage.Tx) error {
		return ops.Accept(t.Context(), tx, process.New{ID: id, Kind: kind, InstanceID: "one", Payload: payload, At: now})
	}); err != nil {
		t.Fatal(err)
	}

	for _, work := range storagetest.Claim(t, ops, process.Claim{Owner: "test", Limit: 1, Now: now, Until: now.Add(time.Minute)}, kind) {
		work.Record.State, work.Record.FinishedAt = state, now

		if _, err := ops.Save(t.Context(), process.Progress{Record: work.Record, Release: true, Now: now}); err != nil {
			t.Fatal(err)
		}
	}
}
