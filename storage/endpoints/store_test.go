package endpoints_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)

type fixture struct {
	*testing.T

	db        *storage.DB
	store     *endpoints.Store
	instances *instances.Store
}

// each runs the test on both databases. The instance "one" has a runtime, and the instance "bare" has none.
func each(t *testing.T, test func(f fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		keys := storagetest.Keys(t)

		if _, err := operations.Open(t.Context(), db, keys); err != nil {
			t.Fatal(err)
		}

		f := fixture{T: t, db: db}

		var err error
		if f.instances, err = instances.Open(t.Context(), db, keys); err != nil {
			t.Fatal(err)
		}

		if f.store, err = endpoints.Open(t.Context(), db, keys); err != nil {
			t.Fatal(err)
		}

		if err := db.InTx(t.Context(), func(tx storage.Tx) error {
			return errors.Join(
				storagetest.Insert(t.Context(), tx, f.instances, environment.Instance{ID: "one", ShootName: "c-one", RuntimeID: "r-one", CreatedAt: now, UpdatedAt: now}),
				storagetest.Insert(t.Context(), tx, f.instances, environment.Instance{ID: "bare", ShootName: "c-bare", CreatedAt: now, UpdatedAt: now}),
			)
		}); err != nil {
			t.Fatal(err)
		}

		test(f)
	})
}

// due returns the IDs of the instances whose endpoints are due.
func (f fixture) due(at time.Time) []string {
	f.Helper()

	listed, err := f.store.ListDue(f.Context(), at, 10)
	if err != nil {
		f.Fatal(err)
	}

	ids := []string{}
	for _, each := range listed {
		ids = append(ids, each.InstanceID)
	}

	return ids
}

func (f fixture) want(reason string, want, got any) {
	f.Helper()

	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s: -want +got\n%s", reason, diff)
	}
}

func TestEndpointOfARuntime(t *testing.T) {
	each(t, func(f fixture) {
		one := environment.Instance{ID: "one", RuntimeID: "r-one"}
		first, second := environment.Endpoint{Server: "https://a.example.com"}, environment.Endpoint{Server: "https://b.example.com", CA: []byte("ca")}

		missing := func(reason string, instance environment.Instance) {
			if got, err := f.store.Get(f.Context(), instance); !errors.Is(err, storage.ErrNotFound) {
				f.Errorf("%s: got %+v, %v", reason, got, err)
			}
		}

		missing("nothing is stored", one)

		for _, endpoint := range []environment.Endpoint{first, second} {
			if err := f.store.Set(f.Context(), one, endpoint, now.Add(time.Hour)); err != nil {
				f.Fatal(err)
			}

			got, err := f.store.Get(f.Context(), one)
			if err != nil {
				f.Fatal(err)
			}

			f.want("the newest endpoint", endpoint, got)
		}

		missing("the instance was suspended and resumed", environment.Instance{ID: "one", RuntimeID: "r-two"})
		missing("the instance is suspended", environment.Instance{ID: "one"})

		if _, err := storage.Exec(f.Context(), f.db.Writer(), `UPDATE endpoints SET id = 'two'`); err != nil {
			f.Fatal(err)
		}

		if got, err := f.store.Get(f.Context(), environment.Instance{ID: "two", RuntimeID: "r-one"}); err == nil || errors.Is(err, storage.ErrNotFound) {
			f.Errorf("the row of another instance is accepted: %+v, %v", got, err)
		}
	})
}

func TestMissingAndDueEndpoints(t *testing.T) {
	each(t, func(f fixture) {
		for range 2 {
			if next, err := f.store.AddMissing(f.Context(), now, ""); next != "" || err != nil {
				f.Fatalf("want one page: the next one starts after %q, %v", next, err)
			}
		}

		f.want("only instances with a runtime need an endpoint", []string{"one"}, f.due(now))
		f.want("it is not due before", []string{}, f.due(now.Add(-time.Second)))

		if _, err := f.store.Get(f.Context(), environment.Instance{ID: "one", RuntimeID: "r-one"}); !errors.Is(err, storage.ErrNotFound) {
			f.Errorf("an empty endpoint is no endpoint: %v", err)
		}

		due := endpoints.Due{InstanceID: "one", At: storage.At(now)}
		for i, want := range []bool{true, false} {
			if got, err := f.store.Postpone(f.Context(), due, now.Add(time.Minute)); got != want || err != nil {
				f.Errorf("replica %d: postponed %t, %v", i, got, err)
			}
		}

		f.want("it is postponed", []string{}, f.due(now))

		if err := f.store.Remove(f.Context(), "one"); err != nil {
			f.Fatal(err)
		}

		f.want("an instance with a runtime keeps its row", []string{"one"}, f.due(now.Add(time.Hour)))

		if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
			return f.instances.Delete(context.WithoutCancel(f.Context()), tx, environment.Instance{ID: "one", ShootName: "c-one"})
		}); err != nil {
			f.Fatal(err)
		}

		if err := f.store.Remove(f.Context(), "one"); err != nil {
			f.Fatal(err)
		}

		f.want("the row of a deleted instance is removed", []string{}, f.due(now.Add(time.Hour)))
	})
}
