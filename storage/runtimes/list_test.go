package runtimes_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// listFixture stores runtimes with operations.
type listFixture struct{ registrations }

func eachList(t *testing.T, test func(b listFixture)) {
	t.Helper()

	eachWithOperations(t, func(b registrations) { test(listFixture{b}) })
}

// order stores a runtime that was ordered the given number of hours after start, with an operation in the given state.
func (b listFixture) order(id string, hours int, kind string, state process.State, changes ...func(*runtimes.Runtime)) {
	b.Helper()

	ordered := runtime(id, "c-"+id)
	ordered.CreatedAt = start.Add(time.Duration(hours) * time.Hour)
	ordered.Provider, ordered.Region = "aws", "eu-central-1"

	for _, change := range changes {
		change(&ordered)
	}

	if !b.insert(ordered) {
		b.Fatalf("the runtime %s was not inserted", id)
	}

	b.operate(id, kind, state, ordered.CreatedAt)

	if !ordered.DeletedAt.IsZero() {
		b.markDeleted(id, ordered.DeletedAt)
	}
}

// operate stores an operation on the runtime.
func (b listFixture) operate(id, kind string, state process.State, at time.Time) {
	b.Helper()

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		if err := b.operations.Accept(b.Context(), tx, process.New{
			ID: kind + " of " + id, Kind: kind, InstanceID: id, Tenant: "tenant", Payload: json.RawMessage(`{}`), At: at,
		}); err != nil {
			return err
		}

		_, err := storage.Exec(b.Context(), tx, `UPDATE operations SET state = ?, progress = 'at 40%' WHERE id = ?`, state, kind+" of "+id)

		return err
	}); err != nil {
		b.Fatal(err)
	}
}

func (b listFixture) ids(filter runtimes.Filter) []string {
	b.Helper()

	found, err := b.store.List(b.Context(), filter)
	if err != nil {
		b.Fatal(err)
	}

	ids := []string{}
	for _, one := range found {
		ids = append(ids, one.Runtime.ID)
	}

	return ids
}

func TestList(t *testing.T) {
	eachList(t, func(b listFixture) {
		b.order("first", 0, "Provision", process.Succeeded)
		b.order("second", 1, "Provision", process.InProgress, func(r *runtimes.Runtime) { r.Tenant = "other" })
		b.order("third", 2, "Provision", process.Failed, func(r *runtimes.Runtime) { r.Region, r.SubAccount = "eu-west-1", "else" })
		b.order("gone", 3, "Deprovision", process.Succeeded, func(r *runtimes.Runtime) { r.ShootName, r.DeletedAt = "c-reused", start.Add(4*time.Hour) })
		b.order("again", 5, "Provision", process.Canceled, func(r *runtimes.Runtime) { r.ShootName = "c-reused" })
		b.operate("first", "Hibernate", process.Canceling, start.Add(6*time.Hour))

		cases := map[string]struct {
			reason string
			filter runtimes.Filter
			want   []string
		}{
			"all":          {"the newest comes first, and a deleted runtime is left out", runtimes.Filter{}, []string{"again", "third", "second", "first"}},
			"with deleted": {"deleted runtimes are listed on request", runtimes.Filter{Deleted: true}, []string{"again", "gone", "third", "second", "first"}},
			"tenant":       {"a tenant sees its own", runtimes.Filter{Tenant: "other"}, []string{"second"}},
			"subaccount":   {"by its label", runtimes.Filter{SubAccount: "else"}, []string{"third"}},
			"id":           {"one runtime", runtimes.Filter{ID: "first"}, []string{"first"}},
			"deleted id":   {"a deleted runtime is not found without asking for it", runtimes.Filter{ID: "gone"}, []string{}},
			"Shoot":        {"the present owner of a name", runtimes.Filter{ShootName: "c-reused"}, []string{"again"}},
			"all of Shoot": {"every owner of a name", runtimes.Filter{ShootName: "c-reused", Deleted: true}, []string{"again", "gone"}},
			"region":       {"by the provider's region", runtimes.Filter{Region: "eu-west-1"}, []string{"third"}},
			"state": {
				"the newest operation counts", runtimes.Filter{States: []process.State{process.Succeeded, process.Canceling}}, []string{"first"},
			},
			"kind":     {"an earlier operation does not count", runtimes.Filter{Kinds: []string{"Provision"}}, []string{"again", "third", "second"}},
			"both":     {"both of the same operation", runtimes.Filter{Kinds: []string{"Provision"}, States: []process.State{process.Failed}}, []string{"third"}},
			"since":    {"the start is included", runtimes.Filter{Since: start.Add(2 * time.Hour)}, []string{"again", "third"}},
			"until":    {"the end is excluded", runtimes.Filter{Until: start.Add(2 * time.Hour)}, []string{"second", "first"}},
			"nobody's": {"nothing matches", runtimes.Filter{Tenant: "none"}, []string{}},
		}

		for name, c := range cases {
			counted, err := b.store.Count(b.Context(), c.filter)
			if err != nil || counted != len(c.want) {
				b.Errorf("%s: counted %d, %v, want %d", name, counted, err, len(c.want))
			}

			c.filter.Limit = 9
			if diff := cmp.Diff(c.want, b.ids(c.filter)); diff != "" {
				b.Errorf("%s: %s: -want +got\n%s", name, c.reason, diff)
			}
		}
	})
}

func TestListedRuntime(t *testing.T) {
	eachList(t, func(b listFixture) {
		b.order("first", 0, "Provision", process.InProgress)

		found, err := b.store.List(b.Context(), runtimes.Filter{Limit: 1})
		if err != nil || len(found) != 1 {
			b.Fatalf("got %v, %v", found, err)
		}

		want := runtime("first", "c-first")
		want.Configuration, want.Provider, want.Region = nil, "aws", "eu-central-1"

		if diff := cmp.Diff(want, found[0].Runtime); diff != "" {
			b.Errorf("a list opens no configuration: -want +got\n%s", diff)
		}

		if got := found[0].Operation; got.ID != "Provision of first" || got.InstanceID != "first" || got.Progress != "at 40%" || !got.CreatedAt.Equal(start) {
			b.Errorf("the newest operation is %+v", got)
		}
	})
}

func TestPages(t *testing.T) {
	eachList(t, func(b listFixture) {
		b.order("one", 0, "Provision", process.Succeeded)
		b.order("two", 1, "Provision", process.Succeeded)
		b.order("three", 1, "Provision", process.Succeeded) // at the same time

		if diff := cmp.Diff([]string{"two", "three"}, b.ids(runtimes.Filter{Limit: 2})); diff != "" {
			b.Errorf("the first page: -want +got\n%s", diff)
		}

		after := runtimes.Filter{Limit: 2, Before: start.Add(time.Hour), BeforeID: "three"}
		if diff := cmp.Diff([]string{"one"}, b.ids(after)); diff != "" {
			b.Errorf("the page after a cursor: -want +got\n%s", diff)
		}

		if counted, err := b.store.Count(b.Context(), after); counted != 3 || err != nil {
			b.Errorf("the total of all pages is %d, %v", counted, err)
		}

		if diff := cmp.Diff([]string{"one"}, b.ids(runtimes.Filter{Limit: 2, Offset: 2})); diff != "" {
			b.Errorf("a numbered page: -want +got\n%s", diff)
		}
	})
}

func TestOperationsOfRuntimes(t *testing.T) {
	eachList(t, func(b listFixture) {
		b.order("first", 0, "Provision", process.Succeeded)
		b.order("second", 1, "Provision", process.Succeeded, func(r *runtimes.Runtime) { r.Tenant = "other" })
		b.order("gone", 2, "Deprovision", process.Succeeded, func(r *runtimes.Runtime) { r.DeletedAt = start.Add(3 * time.Hour) })

		for name, c := range map[string]struct {
			reason string
			filter runtimes.Filter
			want   []string
		}{
			"tenant": {"operations of deleted runtimes stay visible", runtimes.Filter{Tenant: "tenant"}, []string{"Deprovision of gone", "Provision of first"}},
			"Shoot":  {"by the name of the Shoot", runtimes.Filter{ShootName: "c-second"}, []string{"Provision of second"}},
			"region": {"by the region", runtimes.Filter{Region: "eu-west-1"}, []string{}},
			"all": {
				"an empty filter selects all", runtimes.Filter{}, []string{"Deprovision of gone", "Provision of second", "Provision of first"},
			},
		} {
			found, err := b.operations.List(b.Context(), operations.Filter{Instances: c.filter.IDs(), Limit: 9})
			if err != nil {
				b.Fatal(err)
			}

			got := []string{}
			for _, record := range found {
				got = append(got, record.ID)
			}

			if diff := cmp.Diff(c.want, got); diff != "" {
				b.Errorf("%s: %s: -want +got\n%s", name, c.reason, diff)
			}
		}
	})
}

func TestSummaries(t *testing.T) {
	eachList(t, func(b listFixture) {
		b.order("first", 0, "Provision", process.Succeeded)
		b.order("gone", 1, "Deprovision", process.Succeeded, func(r *runtimes.Runtime) { r.DeletedAt = start.Add(2 * time.Hour) })

		got, err := b.store.Summaries(b.Context(), []string{"first", "gone", "none"})
		if err != nil || len(got) != 2 || got["first"].ShootName != "c-first" || got["gone"].DeletedAt.IsZero() || got["first"].Configuration != nil {
			b.Errorf("got %+v, %v", got, err)
		}

		if none, err := b.store.Summaries(b.Context(), nil); err != nil || len(none) != 0 {
			b.Errorf("no IDs give %v, %v", none, err)
		}
	})
}

func TestRowsOfAnOlderVersion(t *testing.T) {
	eachList(t, func(b listFixture) {
		for _, id := range []string{"old-1", "old-2", "new"} {
			b.order(id, 0, "Provision", process.Succeeded)
		}

		if _, err := storage.Exec(b.Context(), b.db.Writer(), `UPDATE runtimes SET provider = NULL, region = NULL WHERE id LIKE 'old%'`); err != nil {
			b.Fatal(err)
		}

		if got := b.get("old-1"); got.Region != "" || got.Provider != "" {
			b.Errorf("a row without a region is read as %+v", got)
		}

		first, err := b.store.WithoutRegion(b.Context(), "", 1)
		if diff := cmp.Diff([]string{"old-1"}, first); diff != "" || err != nil {
			b.Fatalf("the first rows without a region: %v, -want +got\n%s", err, diff)
		}

		for _, id := range []string{"old-1", "new"} {
			if err := b.store.SetRegion(b.Context(), id, "gcp", "europe-west3"); err != nil {
				b.Fatal(err)
			}
		}

		if got := b.get("old-1"); got.Region != "europe-west3" || got.Provider != "gcp" {
			b.Errorf("a completed row is read as %+v", got)
		}

		if got := b.get("new"); got.Region != "eu-central-1" {
			b.Errorf("a recorded region was replaced by %s", got.Region)
		}

		rest, err := b.store.WithoutRegion(b.Context(), "old-1", 9)
		if diff := cmp.Diff([]string{"old-2"}, rest); diff != "" || err != nil {
			b.Errorf("the rest: %v, -want +got\n%s", err, diff)
		}
	})
}
