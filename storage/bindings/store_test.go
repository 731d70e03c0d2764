package bindings_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

const instanceID = "instance"

var createdAt = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture contains the broker's stores on a database with one instance.
type fixture struct {
	*testing.T

	db         *storage.DB
	keys       *secret.Keyring
	bindings   *bindings.Store
	instances  *instances.Store
	operations *operations.Store
}

func each(t *testing.T, test func(s fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		keys := storagetest.Keys(t)
		s := fixture{T: t, db: db, keys: keys}

		var err error
		if s.operations, err = operations.Open(t.Context(), db, keys); err != nil {
			t.Fatal(err)
		}

		if s.instances, err = instances.Open(t.Context(), db, keys); err != nil {
			t.Fatal(err)
		}

		if s.bindings, err = bindings.Open(t.Context(), db, keys); err != nil {
			t.Fatal(err)
		}

		s.inTx(func(tx storage.Tx) error {
			return storagetest.Insert(t.Context(), tx, s.instances, environment.Instance{
				ID: instanceID, ShootName: "c-1", RuntimeID: "runtime", CreatedAt: createdAt, UpdatedAt: createdAt,
			})
		})

		test(s)
	})
}

func (s fixture) inTx(work func(tx storage.Tx) error) {
	s.Helper()

	if err := s.db.InTx(s.Context(), work); err != nil {
		s.Fatal(err)
	}
}

func binding(id string) environment.Binding {
	return environment.Binding{
		ID: id, InstanceID: instanceID, BindingID: "binding-" + id, RuntimeID: "runtime", Role: environment.RoleEdit,
		Lifetime: 20 * time.Minute, Predecessor: "former", AppGUID: "app", CreatedBy: "someone", State: environment.BindingCreating,
		OperationID: "operation-" + id, CreatedAt: createdAt, ExpiresAt: createdAt.Add(20 * time.Minute),
	}
}

// insert stores the binding and its operation. If ended is true, the operation has ended.
func (s fixture) insert(made environment.Binding, ended bool) {
	s.Helper()

	s.inTx(func(tx storage.Tx) error {
		if err := s.operations.Accept(s.Context(), tx, process.New{
			ID: made.OperationID, Kind: "bind", InstanceID: environment.BindingKey(made.InstanceID, made.BindingID),
			Payload: json.RawMessage(`{}`), At: createdAt,
		}); err != nil {
			return err
		}

		if ended {
			if _, err := s.operations.CancelOne(s.Context(), tx, made.OperationID, "the test ends it", createdAt); err != nil {
				return err
			}
		}

		return s.bindings.Insert(s.Context(), tx, made)
	})
}

func (s fixture) get(id string) (environment.Binding, error) {
	return s.bindings.Get(s.Context(), s.db.Reader(), instanceID, "binding-"+id)
}

func TestBindingRoundTrip(t *testing.T) {
	each(t, func(s fixture) {
		s.insert(binding("one"), false)

		want := binding("one")
		want.Access.ExpiresAt = want.ExpiresAt

		if got, err := s.get("one"); err != nil || !cmp.Equal(want, got) {
			s.Errorf("%v, -want +got\n%s", err, cmp.Diff(want, got))
		}

		access := environment.Access{Kubeconfig: "hush-hush", Server: "https://hush-hush.example.com", ExpiresAt: createdAt.Add(time.Hour)}
		for range 2 {
			if err := s.bindings.SaveAccess(s.Context(), s.db.Writer(), binding("one"), access); err != nil {
				s.Errorf("the stored access cannot be read: %v", err)
			}

			access.Kubeconfig = "later"
		}

		want.State, want.ExpiresAt = environment.BindingReady, createdAt.Add(time.Hour)
		want.Access = environment.Access{Kubeconfig: "hush-hush", Server: "https://hush-hush.example.com", ExpiresAt: createdAt.Add(time.Hour)}

		if got, err := s.get("one"); err != nil || !cmp.Equal(want, got) {
			s.Errorf("the first access must stay stored: %v, -want +got\n%s", err, cmp.Diff(want, got))
		}

		stored, err := storage.Get[string](s.Context(), s.db.Reader(), `SELECT access FROM bindings`)
		if err != nil || strings.Contains(stored, "hush") {
			s.Errorf("the access is stored unencrypted: %s, %v", stored, err)
		}

		if _, err := s.get("two"); !errors.Is(err, storage.ErrNotFound) {
			s.Errorf("unknown: %v", err)
		}

		want.Access = environment.Access{}
		if listed, err := s.bindings.OfInstance(s.Context(), instanceID); err != nil || !cmp.Equal([]environment.Binding{want}, listed) {
			s.Errorf("the list contains secrets, or lacks rows: %v, %v", listed, err)
		}
	})
}

func TestBindingIDIsFreeDuringTheRemoval(t *testing.T) {
	each(t, func(s fixture) {
		former, next := binding("one"), binding("two")
		next.BindingID, next.CreatedAt = former.BindingID, createdAt.Add(-time.Second) // the clocks of two replicas differ

		s.insert(former, false)

		if err := s.db.InTx(s.Context(), func(tx storage.Tx) error {
			return s.bindings.Insert(s.Context(), tx, next)
		}); !storage.IsDuplicate(err) {
			s.Errorf("two bindings have the same ID: %v", err)
		}

		for _, want := range []bool{true, false} {
			s.inTx(func(tx storage.Tx) error {
				marked, err := s.bindings.MarkDeleting(s.Context(), tx, former, "removal")
				if marked != want {
					s.Errorf("marked for removal: %t, want %t", marked, want)
				}

				return err
			})
		}

		if wanted, err := s.bindings.Wanted(s.Context(), "one"); err != nil || wanted {
			s.Errorf("a binding marked for removal is wanted: %v", err)
		}

		if err := s.bindings.SaveAccess(s.Context(), s.db.Writer(), binding("one"), environment.Access{Kubeconfig: "late", ExpiresAt: createdAt}); err != nil {
			s.Error(err)
		}

		if got, err := s.get("one"); err != nil || got.State != environment.BindingDeleting || got.Access.Kubeconfig != "" {
			s.Errorf("a binding marked for removal is %s, and gets credentials: %v", got.State, err)
		}

		s.insert(next, false)

		if wanted, err := s.bindings.Wanted(s.Context(), "two"); err != nil || !wanted {
			s.Errorf("the next binding is not wanted: %v", err)
		}

		if got, err := s.get("one"); err != nil || got.ID != "two" {
			s.Errorf("found %s, %v, want the wanted one", got.ID, err)
		}

		if got, err := s.bindings.Newest(s.Context(), s.db.Reader(), instanceID, next.BindingID); err != nil || !cmp.Equal(got, next) {
			s.Errorf("found %v, %v, want the wanted one without credentials", got, err)
		}

		if err := s.bindings.Delete(s.Context(), s.db.Writer(), "two"); err != nil {
			s.Fatal(err)
		}

		if got, err := s.get("one"); err != nil || got.ID != "one" {
			s.Errorf("found %s, %v, want the removed one", got.ID, err)
		}
	})
}

func TestBindingsAreRemovedWithTheirInstance(t *testing.T) {
	each(t, func(s fixture) {
		s.insert(binding("one"), false)

		instance, err := s.instances.Get(s.Context(), s.db.Reader(), instanceID)
		if err != nil {
			s.Fatal(err)
		}

		if _, err := storage.Exec(s.Context(), s.db.Writer(), `DELETE FROM instances WHERE id = ?`, instance.ID); err != nil {
			s.Fatal(err)
		}

		if _, err := s.get("one"); !errors.Is(err, storage.ErrNotFound) {
			s.Errorf("the binding still exists: %v", err)
		}

		err = s.bindings.SaveAccess(s.Context(), s.db.Writer(), binding("one"), environment.Access{ExpiresAt: createdAt})
		if !errors.Is(err, storage.ErrNotFound) {
			s.Errorf("a removed binding gets credentials: %v", err)
		}

		if err := s.db.InTx(s.Context(), func(tx storage.Tx) error {
			return s.bindings.Insert(s.Context(), tx, binding("two"))
		}); err == nil {
			s.Error("a binding without an instance is stored")
		}
	})
}

func TestCountLive(t *testing.T) {
	each(t, func(s fixture) {
		other, expired, removed := binding("other"), binding("expired"), binding("removed")
		other.RuntimeID, expired.ExpiresAt, removed.State = "previous runtime", createdAt, environment.BindingDeleting

		for _, made := range []environment.Binding{binding("one"), other, expired, removed} {
			s.insert(made, false)
		}

		if count, err := s.bindings.CountLive(s.Context(), s.db.Reader(), instanceID, "runtime", createdAt); err != nil || count != 1 {
			s.Errorf("count: %d, %v", count, err)
		}
	})
}

func TestRemovable(t *testing.T) {
	cases := map[string]struct {
		reason       string
		state        environment.BindingState
		expired      bool
		ended, found bool
	}{
		"live":                        {"a valid binding", environment.BindingReady, false, true, false},
		"expired":                     {"an expired binding", environment.BindingReady, true, true, true},
		"being made":                  {"its operation is unfinished", environment.BindingCreating, false, false, false},
		"it was created too recently": {"its operation continues and creates a new access", environment.BindingCreating, true, false, false},
		"failed":                      {"its operation failed", environment.BindingCreating, false, true, true},
		"both":                        {"a binding is found once", environment.BindingCreating, true, true, true},
		"being removed":               {"its operation is unfinished", environment.BindingDeleting, true, false, false},
		"not removed":                 {"the removal failed, and the next attempt is due", environment.BindingDeleting, true, true, true},
		"just now":                    {"the removal failed only recently", environment.BindingDeleting, false, true, false},
	}

	each(t, func(s fixture) {
		for name, c := range cases {
			made := binding(name)
			made.State = c.state

			if c.expired {
				made.ExpiresAt = createdAt
			}

			s.insert(made, c.ended)
		}

		over := func(failedBefore time.Time) map[string]int {
			over, err := s.bindings.Removable(s.Context(), createdAt, failedBefore, len(cases))
			if err != nil {
				s.Fatal(err)
			}

			found := map[string]int{}
			for _, binding := range over {
				found[binding.ID]++
			}

			return found
		}

		if found := over(createdAt); found["not removed"] != 0 || found["expired"] != 1 {
			s.Errorf("a removal that has just failed is due: %v", found)
		}

		found := over(createdAt.Add(time.Second))

		for name, c := range cases {
			if found[name] != map[bool]int{true: 1}[c.found] {
				s.Errorf("%s is found %d times: %s", name, found[name], c.reason)
			}
		}
	})
}
