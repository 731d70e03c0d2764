package instances_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// owned stores an instance of a platform, with an operation that was accepted before the instance was moved there.
func owned(t *testing.T, db *storage.DB) (*instances.Store, environment.Instance) {
	t.Helper()

	ops, err := operations.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	store, stored := open(t, db), instance("one")
	stored.Platform = "alpha"

	inTx(t, db, func(tx storage.Tx) {
		if err := storagetest.Insert(t.Context(), tx, store, stored); err != nil {
			t.Fatal(err)
		}

		if err := ops.Accept(t.Context(), tx, process.New{
			ID: "o1", Kind: "provision", InstanceID: "one", VisibleTo: "alpha", Payload: []byte(`{}`), At: stored.CreatedAt.Add(time.Second),
		}); err != nil {
			t.Fatal(err)
		}

		stored.Platform, stored.SharedWith = "beta", []string{"gamma", "delta"}
		if err := store.SetPlatforms(t.Context(), tx, stored); err != nil {
			t.Fatal(err)
		}
	})

	return store, stored
}

func TestPlatforms(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		store, stored := owned(t, db)

		got, err := store.Get(t.Context(), db.Reader(), "one")
		if diff := cmp.Diff(stored, got); diff != "" || err != nil {
			t.Errorf("instance: %v -want +got\n%s", err, diff)
		}

		want := environment.Instance{
			ID: "one", Platform: "beta", SharedWith: []string{"gamma", "delta"}, PlatformRegion: "cf-eu10", GlobalAccountID: "ga",
			CreatedAt: stored.CreatedAt,
		}

		owner, err := store.Owner(t.Context(), db.Reader(), "one")
		if diff := cmp.Diff(want, owner); diff != "" || err != nil {
			t.Errorf("owner: %v -want +got\n%s", err, diff)
		}

		record, owner, err := store.Polled(t.Context(), db.Reader(), "one", "o1")
		if diff := cmp.Diff(want, owner); diff != "" || err != nil {
			t.Errorf("owner of a polled operation: %v -want +got\n%s", err, diff)
		}

		if record.ID != "o1" || record.InstanceID != "one" || record.VisibleTo != "alpha" || record.State != process.Pending {
			t.Errorf("polled operation: %+v", record)
		}

		if _, owner, err = store.Polled(t.Context(), db.Reader(), "none", "o1"); err != nil || owner.ID != "" {
			t.Errorf("the polled operation has no instance, got %+v, %v", owner, err)
		}

		if _, _, err := store.Polled(t.Context(), db.Reader(), "one", "none"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("an unknown operation: want ErrNotFound, got %v", err)
		}

		if _, err := store.Owner(t.Context(), db.Reader(), "none"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("an unknown instance: want ErrNotFound, got %v", err)
		}

		for _, test := range []struct {
			platform string
			want     int
		}{{"beta", 1}, {"gamma", 0}, {"alpha", 0}, {"", 1}} {
			if count, err := store.Count(t.Context(), instances.Filter{Platform: test.platform}); count != test.want || err != nil {
				t.Errorf("platform %q has %d instances, want %d: %v", test.platform, count, test.want, err)
			}
		}
	})
}

func TestChangedPlatformIsDetected(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		store, stored := owned(t, db)

		for _, change := range []string{`platform = 'evil'`, `platform = 'beta', shared_with = 'gamma delta evil'`} {
			if _, err := storage.Exec(t.Context(), db.Writer(), `UPDATE instances SET `+change); err != nil {
				t.Fatal(err)
			}

			if _, err := store.Get(t.Context(), db.Reader(), "one"); err == nil || !strings.Contains(err.Error(), "changed outside") {
				t.Errorf("%s: the change is not detected: %v", change, err)
			}
		}

		stored.Platform = "" // as an earlier release writes it
		inTx(t, db, func(tx storage.Tx) {
			if err := store.Update(t.Context(), tx, stored); err != nil {
				t.Fatal(err)
			}
		})

		if _, err := storage.Exec(t.Context(), db.Writer(), `UPDATE instances SET platform = 'beta'`); err != nil {
			t.Fatal(err)
		}

		if got, err := store.Get(t.Context(), db.Reader(), "one"); err != nil || got.Platform != "beta" {
			t.Errorf("a row that an earlier release has updated: %q, %v", got.Platform, err)
		}
	})
}
