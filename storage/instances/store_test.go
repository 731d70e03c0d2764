package instances_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func open(t *testing.T, db *storage.DB) *instances.Store {
	t.Helper()

	store, err := instances.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	return store
}

func instance(id string) environment.Instance {
	began := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)

	return environment.Instance{
		ID: id, ServiceID: "service", PlanID: "plan", PlanName: "aws", GlobalAccountID: "ga", SubAccountID: "sa",
		PlatformRegion: "cf-eu10", Provider: "aws", Region: "eu-central-1", Name: "name", ShootName: "c-" + id,
		DashboardURL: "https://example.com", CreatedAt: began, UpdatedAt: began,
		Request: environment.Request{Context: json.RawMessage(`{"a":1}`), Cluster: environment.Cluster{Zones: []string{"a"}}},
	}
}

func TestInstanceRoundTrip(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		ops, err := operations.Open(t.Context(), db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		store := open(t, db)
		by := storagetest.Hold(t, db, ops, "held", "one")

		for i, taken := range []bool{false, true} {
			err := db.InTx(t.Context(), func(tx storage.Tx) error {
				return storagetest.Insert(t.Context(), tx, store, instance("one"))
			})
			if storage.IsDuplicate(err) != taken || (err == nil) == taken {
				t.Errorf("insert %d: got %v", i+1, err)
			}
		}

		if err := store.SetRuntime(t.Context(), by, instance("one"), "runtime"); err != nil {
			t.Fatal(err)
		}

		if err := store.SetDashboardURL(t.Context(), by, instance("one"), "https://console.example.com"); err != nil {
			t.Fatal(err)
		}

		late := by
		late.Lease.Fence--

		if err := store.SetDashboardURL(t.Context(), late, instance("one"), "https://late.example.com"); err != nil {
			t.Fatal(err)
		}

		want := instance("one")
		want.RuntimeID, want.DashboardURL = "runtime", "https://console.example.com"

		got, err := store.Get(t.Context(), db.Reader(), "one")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("instance: %v -want +got\n%s", err, diff)
		}

		former := instance("one")
		former.ShootName = "c-former"

		if err := store.Delete(t.Context(), db.Writer(), former); err != nil {
			t.Fatal(err)
		}

		if _, err := store.Get(t.Context(), db.Reader(), "one"); err != nil {
			t.Errorf("removing a previous instance with the same ID removed the new one: %v", err)
		}

		for range 2 {
			if err := store.Delete(t.Context(), db.Writer(), instance("one")); err != nil {
				t.Fatal(err)
			}
		}

		if _, err := store.Get(t.Context(), db.Reader(), "one"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("after the deletion: want ErrNotFound, got %v", err)
		}
	})
}

func TestShootNamesAreUnique(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		store := open(t, db)
		other := instance("two")
		other.ShootName = instance("one").ShootName

		inTx(t, db, func(tx storage.Tx) {
			if err := storagetest.Insert(t.Context(), tx, store, instance("one")); err != nil {
				t.Fatal(err)
			}
		})

		err := db.InTx(t.Context(), func(tx storage.Tx) error {
			return storagetest.Insert(t.Context(), tx, store, other)
		})
		if !storage.IsDuplicate(err) {
			t.Errorf("want a duplicate, got %v", err)
		}
	})
}

func TestTouch(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		store := open(t, db)
		moment := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)

		touch := func(id string, want bool) {
			inTx(t, db, func(tx storage.Tx) {
				if touched, err := store.Touch(t.Context(), tx, id, moment); err != nil || touched != want {
					t.Errorf("touch %s: want %t, got %t, %v", id, want, touched, err)
				}
			})
		}

		touch("one", false)
		inTx(t, db, func(tx storage.Tx) {
			if err := storagetest.Insert(t.Context(), tx, store, instance("one")); err != nil {
				t.Fatal(err)
			}
		})
		touch("one", true)

		want := instance("one")
		want.UpdatedAt = moment

		got, err := store.Get(t.Context(), db.Reader(), "one")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("instance: %v -want +got\n%s", err, diff)
		}
	})
}

func TestUpdate(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		store := open(t, db)
		inTx(t, db, func(tx storage.Tx) {
			if err := storagetest.Insert(t.Context(), tx, store, instance("one")); err != nil {
				t.Fatal(err)
			}
		})

		want := instance("one")
		want.PlanID, want.PlanName, want.MaintenanceVersion = "other", "large", "2.0.0"
		want.GlobalAccountID, want.SubscriptionAccountID = "moved", "ga"
		want.RuntimeID, want.Suspended = "runtime", true
		want.ExpiresAt, want.ExpiredAt = want.CreatedAt.Add(time.Hour), want.CreatedAt.Add(time.Minute)
		want.Request.Parameters = json.RawMessage(`{"b":2}`)

		update := func(changed environment.Instance) environment.Instance {
			inTx(t, db, func(tx storage.Tx) {
				if err := store.Update(t.Context(), tx, changed); err != nil {
					t.Fatal(err)
				}
			})

			got, err := store.Get(t.Context(), db.Reader(), "one")
			if err != nil {
				t.Fatal(err)
			}

			return got
		}

		if diff := cmp.Diff(want, update(want)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}

		former := want
		former.ShootName, former.PlanName = "c-former", "former"

		if diff := cmp.Diff(want, update(former)); diff != "" {
			t.Errorf("updating a previous instance with the same ID changed the new one: -want +got\n%s", diff)
		}
	})
}

func TestExpiring(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		store := open(t, db)
		now := instance("").CreatedAt

		insert := func(id string, change func(*environment.Instance)) {
			made := instance(id)
			change(&made)
			inTx(t, db, func(tx storage.Tx) {
				if err := errors.Join(storagetest.Insert(t.Context(), tx, store, made), store.Update(t.Context(), tx, made)); err != nil {
					t.Fatal(err)
				}
			})
		}

		insert("lasts", func(*environment.Instance) {})
		insert("later", func(i *environment.Instance) { i.ExpiresAt = now.Add(time.Second) })
		insert("gone", func(i *environment.Instance) { i.ExpiresAt, i.ExpiredAt, i.Suspended = now, now, true })
		insert("c", func(i *environment.Instance) { i.ExpiresAt, i.Suspended = now, true })
		insert("b", func(i *environment.Instance) { i.ExpiresAt = now })
		insert("a", func(i *environment.Instance) { i.ExpiresAt, i.ExpiredAt = now.Add(-time.Hour), now })

		a, b, c := instances.Expiring{ID: "a", Expired: true}, instances.Expiring{ID: "b"}, instances.Expiring{ID: "c"}
		for _, expiring := range []*instances.Expiring{&a, &b, &c} {
			expiring.PlanName = instance("").PlanName
		}

		for after, want := range map[string][]instances.Expiring{"": {a, b, c}, "a": {b, c}, "c": {}} {
			got, err := store.Expiring(t.Context(), now, after, 10)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("after %q: %v -want +got\n%s", after, err, diff)
			}
		}
	})
}

func inTx(t *testing.T, db *storage.DB, work func(tx storage.Tx)) {
	t.Helper()

	if err := db.InTx(t.Context(), func(tx storage.Tx) error {
		work(tx)

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestFeedCursor(t *testing.T) {
	each(t, func(s fixture) {
		for _, want := range []string{"", "c-1", "c-2"} {
			if want != "" {
				if err := s.store.SaveFeedCursor(s.Context(), want); err != nil {
					s.Fatal(err)
				}
			}

			if got, err := s.store.FeedCursor(s.Context()); err != nil || got != want {
				s.Errorf("the holder is %q, %v, want %q", got, err, want)
			}
		}
	})
}

// TestChangedColumnsAreRejected changes, without the encryption key, the columns that determine which tenant the cluster belongs
// to.
func TestChangedColumnsAreRejected(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		ops, err := operations.Open(t.Context(), db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		store := open(t, db)
		by := storagetest.Hold(t, db, ops, "held", "one")

		inTx(t, db, func(tx storage.Tx) {
			if err := storagetest.Insert(t.Context(), tx, store, instance("one")); err != nil {
				t.Fatal(err)
			}
		})

		set := func(column, value string) {
			t.Helper()

			if _, err := storage.Exec(t.Context(), db.Writer(), `UPDATE instances SET `+column+` = ?`, value); err != nil {
				t.Fatal(err)
			}
		}

		// An older replica sets the ID of a new runtime without sealing it.
		set("runtime_id", "runtime")

		if got, err := store.Get(t.Context(), db.Reader(), "one"); err != nil || got.RuntimeID != "runtime" {
			t.Fatalf("got %q, %v", got.RuntimeID, err)
		}

		if err := store.SetRuntime(t.Context(), by, instance("one"), "runtime"); err != nil {
			t.Fatal(err)
		}

		for column, value := range map[string]string{
			"runtime_id": "runtime", "global_account_id": "ga", "subaccount_id": "sa", "subscription_account_id": "", "shoot_name": "c-one", "provider": "aws",
		} {
			for _, other := range []string{"other", ""} {
				if other == value {
					continue
				}

				set(column, other)

				for name, read := range map[string]func() error{
					"Get": func() error { _, err := store.Get(t.Context(), db.Reader(), "one"); return err },
					"GetWithNewest": func() error {
						_, _, err := store.GetWithNewest(t.Context(), db.Reader(), "one", "held")

						return err
					},
				} {
					if err := read(); !errors.Is(err, storage.ErrChangedColumn) || !strings.Contains(err.Error(), "reading instance one: the row cannot be read: "+column+": ") {
						t.Errorf("%s = %q: %s returns %v", column, other, name, err)
					}
				}

				if err := store.SetRuntime(t.Context(), by, instance("one"), "another"); column != "shoot_name" && !errors.Is(err, storage.ErrChangedColumn) {
					t.Errorf("%s = %q: SetRuntime seals the changed row: %v", column, other, err)
				}

				set(column, value)
			}
		}

		if _, err := store.Get(t.Context(), db.Reader(), "one"); err != nil {
			t.Errorf("the restored row is rejected: %v", err)
		}
	})
}

// TestRowsOfOlderReleases reads a row whose sealed part contains no columns. The next write must add them.
func TestRowsOfOlderReleases(t *testing.T) {
	db, keys := storagetest.SQLite(t), storagetest.Keys(t)

	store, err := instances.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	want := instance("one")
	inTx(t, db, func(tx storage.Tx) {
		if err := storagetest.Insert(t.Context(), tx, store, want); err != nil {
			t.Fatal(err)
		}
	})

	request, err := json.Marshal(want.Request)
	if err != nil {
		t.Fatal(err)
	}

	change := func(column, value string) {
		t.Helper()

		if _, err := storage.Exec(t.Context(), db.Writer(), `UPDATE instances SET `+column+` = ?`, value); err != nil {
			t.Fatal(err)
		}
	}

	change("request", keys.Seal(request, "request of instance one"))
	change("global_account_id", "moved") // by an older release

	got, err := store.Get(t.Context(), db.Reader(), "one")
	if err != nil || got.GlobalAccountID != "moved" {
		t.Fatalf("got account %q, %v", got.GlobalAccountID, err)
	}

	inTx(t, db, func(tx storage.Tx) {
		if err := store.Update(t.Context(), tx, got); err != nil {
			t.Fatal(err)
		}
	})
	change("global_account_id", "ga")

	if _, err := store.Get(t.Context(), db.Reader(), "one"); !errors.Is(err, storage.ErrChangedColumn) {
		t.Errorf("the row is not bound after a write: %v", err)
	}
}
