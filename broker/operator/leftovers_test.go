package operator_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// fakeCleaner implements Cleaner. It always returns the same result.
type fakeCleaner struct {
	cleanup  string
	leftover environment.Leftover
	err      error
	asked    []string
}

func (f *fakeCleaner) Clean(_ context.Context, id, why string) (string, error) {
	f.asked = append(f.asked, "clean "+id+" "+why)

	return f.cleanup, f.err
}

func (f *fakeCleaner) Confirm(_ context.Context, id, why string) (environment.Leftover, []environment.OutsideObject, error) {
	f.asked = append(f.asked, "confirm "+id+" "+why)

	return f.leftover, []environment.OutsideObject{{System: environment.SystemEDP, Kind: environment.KindDataTenant, Key: "sub"}}, f.err
}

// leftover stores a leftover of an instance that belongs to the account, with an object, and returns it.
func (b *bench) leftover(instanceID, account string, deletedAt time.Time) environment.Leftover {
	b.Helper()

	record := storagetest.Hold(b, b.db, b.operations, environment.KindDeprovision, instanceID)
	left := environment.NewLeftover(record, environment.Instance{
		ID: instanceID, Name: "name of " + instanceID, GlobalAccountID: account, PlanName: "aws", RuntimeID: "runtime", Provider: "aws", ShootName: "c-1",
		CreatedAt: b.clock.Now(),
	}, []string{"EDP_Deregistration"}, deletedAt)

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error { return b.leftovers.Add(b.Context(), tx, left) }); err != nil {
		b.Fatal(err)
	}

	if err := b.objects.Set(b.Context(), record, environment.OutsideObject{
		InstanceID: left.Key(), System: environment.SystemEDP, Kind: environment.KindDataTenant, Key: "sub", State: environment.OutsideLeftOver,
	}, b.clock.Now()); err != nil {
		b.Fatal(err)
	}

	return left
}

func TestListLeftovers(t *testing.T) {
	onEach(t, func(b *bench) {
		b.instance("living", process.Succeeded)

		older := b.leftover("older", "acme", b.clock.Now().Add(-time.Hour))
		newer := b.leftover("newer", "acme", b.clock.Now())
		b.leftover("other", "other", b.clock.Now())

		got := read[operatorapi.RuntimeList](b, b.want("a page", b.do("viewer", "GET",
			"/runtimes?leftovers=true&account=acme&page_size=1&total=true"), http.StatusOK))
		if len(got.Data) != 1 || *got.TotalCount != 2 || got.Data[0].InstanceID != "newer" || got.Data[0].Status.State != operatorapi.RuntimeStateDeleted {
			t.Fatalf("got %+v", got)
		}

		want := operatorapi.Leftover{
			ID: newer.ID, Kind: environment.KindDeprovision, Steps: []string{"EDP_Deregistration"}, RetryAt: newer.RetryAt,
			Objects: []operatorapi.OutsideObject{{
				System: environment.SystemEDP, Kind: environment.KindDataTenant, Name: "sub", State: "left over", UpdatedAt: b.clock.Now(),
			}},
		}
		if diff := cmp.Diff(want, got.Data[0].Leftover); diff != "" || !got.Data[0].Status.DeletedAt.Equal(newer.DeletedAt) {
			t.Errorf("deleted at %s, -want +got:\n%s", got.Data[0].Status.DeletedAt, diff)
		}

		got = read[operatorapi.RuntimeList](b, b.want("the next page", b.do("viewer", "GET",
			"/runtimes?leftovers=true&account=acme&page_size=1&cursor="+got.Cursor), http.StatusOK))
		if len(got.Data) != 1 || got.Data[0].Leftover.ID != older.ID || got.Cursor != "" {
			t.Errorf("got %+v", got)
		}

		got = read[operatorapi.RuntimeList](b, b.want("without leftovers", b.do("viewer", "GET", "/runtimes"), http.StatusOK))
		if len(got.Data) != 1 || got.Data[0].InstanceID != "living" {
			t.Errorf("the list of instances has %+v", got.Data)
		}

		b.want("the instance is gone", b.do("viewer", "GET", "/runtimes/newer"), http.StatusNotFound)
		b.want("leftovers have no other state", b.do("viewer", "GET", "/runtimes?leftovers=true&state=failed"), http.StatusBadRequest)
		b.want("a boolean", b.do("viewer", "GET", "/runtimes?leftovers=some"), http.StatusBadRequest)
	})
}

func TestChangeLeftovers(t *testing.T) {
	b := newBench(t)
	id := uuid.NewString()
	change := func(verb, reason string) reply {
		return b.send("operator", "POST", "/leftovers/"+id+"/"+verb, strings.NewReader(`{"reason": "`+reason+`"}`))
	}

	left := b.leftover("one", "acme", b.clock.Now())
	b.cleaner.cleanup, b.cleaner.leftover = left.ID, left // any operation in the database will do

	got := read[operatorapi.Operation](b, b.want("a cleanup", change("cleanup", "EDP is back"), http.StatusAccepted))
	if got.ID != left.ID {
		t.Errorf("the response is operation %q", got.ID)
	}

	confirmed := read[operatorapi.Leftover](b, b.want("a confirmation", change("confirm", "removed by hand"), http.StatusOK))
	if confirmed.ID != left.ID || len(confirmed.Objects) != 1 {
		t.Errorf("the response is %+v", confirmed)
	}

	b.want("a reason is required", change("confirm", " "), http.StatusBadRequest)
	b.want("unknown fields are rejected", b.send("operator", "POST", "/leftovers/"+id+"/confirm", strings.NewReader(`{"raeson": "x"}`)), http.StatusBadRequest)

	b.cleaner.err = failure.New(failure.NotFound, "none")
	b.want("no leftover", change("cleanup", "x"), http.StatusNotFound)

	b.cleaner.err = failure.New(failure.Conflict, "runs")
	b.want("a cleanup is running", change("confirm", "x"), http.StatusConflict)

	want := []string{
		"clean " + id + " by operator: EDP is back", "confirm " + id + " by operator: removed by hand",
		"clean " + id + " by operator: x", "confirm " + id + " by operator: x",
	}
	if diff := cmp.Diff(want, b.cleaner.asked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestErasureWaitsForLeftovers checks that an account with leftovers is not erased, and that an erasure removes the records of objects
// that deleted instances had in other systems, but not the records of other accounts and of existing instances.
func TestErasureWaitsForLeftovers(t *testing.T) {
	onEach(t, func(b *bench) {
		left := b.leftover("one", "ga", b.clock.Now())

		for _, id := range []string{"gone", "living"} {
			b.instance(id, process.Succeeded)
		}

		record := func(key string) {
			b.inTx(func(tx storage.Tx) error {
				_, err := storage.Exec(b.Context(), tx, `INSERT INTO outside_objects (instance_id, system, kind, object_key, state, updated_at)
					VALUES (?, 'edp', 'data tenant', 'sub', 'left over', ?)`, key, storage.At(b.clock.Now()))

				return err
			})
		}

		for _, id := range []string{"gone", "living", "unknown"} {
			record(id)
		}

		b.drop("gone")

		if found := b.account("ga"); found.OutsideObjects != 1 || len(found.Instances) != 2 || found.Instances[1].LeftoverID != left.ID {
			b.Errorf("the stored data are %+v", found)
		}

		b.inTx(func(tx storage.Tx) error {
			_, err := storage.Exec(b.Context(), tx, `UPDATE instances SET global_account_id = 'other'`)

			return err
		})
		b.wantConflict("ga", "The account has leftovers from deletions: "+left.ID+
			". Clean them up first, or confirm that nothing is left: ebctl instance list --leftovers.")
		b.inTx(func(tx storage.Tx) error { return b.leftovers.Remove(b.Context(), tx, left.ID) })

		if erased := b.erase("ga"); erased.OutsideObjects != 1 || !erased.Complete {
			b.Errorf("the erasure has changed %+v", erased)
		}

		keys, err := storage.Select[string](b.Context(), b.db.Reader(), `SELECT instance_id FROM outside_objects ORDER BY instance_id`)
		if diff := cmp.Diff([]string{"living", left.Key(), "unknown"}, keys); diff != "" || err != nil {
			b.Errorf("%v, records that remain, -want +got:\n%s", err, diff)
		}
	})
}
