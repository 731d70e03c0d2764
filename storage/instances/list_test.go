package instances_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

type fixture struct {
	*testing.T

	db         *storage.DB
	store      *instances.Store
	operations *operations.Store
}

// each runs the test on both databases with five instances: a, b and c belong to one account, d and e to another. a and b were
// created at the same time. The deletion of d has failed, b is being deleted, and the creation of e is pending.
func each(t *testing.T, test func(s fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		keys := storagetest.Keys(t)

		ops, err := operations.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		store, err := instances.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		s := fixture{T: t, db: db, store: store, operations: ops}

		s.insert("a", 0, func(i *environment.Instance) { i.SubAccountID, i.Region = "sa-2", "us-east-1" })
		s.insert("b", 0, func(i *environment.Instance) { i.PlanID, i.PlanName = "plan-2", "azure" })
		s.insert("c", time.Microsecond, func(i *environment.Instance) {
			i.PlatformRegion, i.ServiceID, i.DashboardURL = "cf-us10", "service-2", "https://c"
		})
		s.insert("d", time.Hour, func(i *environment.Instance) { i.GlobalAccountID = "ga-2" })
		s.insert("e", 2*time.Hour, func(i *environment.Instance) {
			i.GlobalAccountID, i.UpdatedAt, i.RuntimeID = "ga-2", began.Add(2*time.Hour), "runtime-e"
		})

		for _, id := range []string{"a", "b", "c", "d"} {
			s.finish(id, environment.KindProvision, process.Succeeded)
		}

		s.finish("d", environment.KindDeprovision, process.Failed)
		s.begin("b", environment.KindDeprovision)
		s.accept("e", environment.KindProvision)

		test(s)
	})
}

var began = time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)

func (s fixture) insert(id string, age time.Duration, change func(*environment.Instance)) {
	s.Helper()

	inserted := instance(id)
	inserted.CreatedAt = began.Add(age)
	change(&inserted)

	inTx(s.T, s.db, func(tx storage.Tx) {
		if err := storagetest.Insert(s.Context(), tx, s.store, inserted); err != nil {
			s.Error(err)
		}
	})
}

func (s fixture) accept(instanceID, kind string) {
	s.Helper()

	inTx(s.T, s.db, func(tx storage.Tx) {
		if err := s.operations.Accept(s.Context(), tx, process.New{
			ID: kind + " " + instanceID, Kind: kind, InstanceID: instanceID, Description: "for " + instanceID,
			Payload: json.RawMessage(`{}`), At: began,
		}); err != nil {
			s.Error(err)
		}
	})
}

// begin accepts an operation and claims it, so that the operation is in progress.
func (s fixture) begin(instanceID, kind string) process.Record {
	s.Helper()
	s.accept(instanceID, kind)

	claimed := storagetest.Claim(s, s.operations, process.Claim{
		Owner: "replica", Limit: 1, Now: began, Until: began.Add(time.Hour),
	}, kind)
	if len(claimed) != 1 || claimed[0].Record.InstanceID != instanceID {
		s.Fatalf("claimed %v", claimed)
	}

	return claimed[0].Record
}

func (s fixture) finish(instanceID, kind string, state process.State) {
	s.Helper()

	record := s.begin(instanceID, kind)
	record.State, record.FinishedAt, record.Stage, record.Step = state, began, "stage", "step"

	if state == process.Failed {
		record.Problem = process.Problem{Message: "no quota", Reason: "ERR_QUOTA", Component: "gardener"}
	}

	if _, err := s.operations.Save(s.Context(), process.Progress{Record: record, Release: true, Now: began.Add(time.Minute)}); err != nil {
		s.Fatal(err)
	}
}

// list returns the IDs of the selected instances, in the order of List.
func (s fixture) list(filter instances.Filter) []string {
	s.Helper()

	listed, err := s.store.List(s.Context(), filter)
	if err != nil {
		s.Fatal(err)
	}

	ids := []string{}
	for _, one := range listed {
		ids = append(ids, one.Instance.ID)
	}

	return ids
}

func (s fixture) count(filter instances.Filter) int {
	s.Helper()

	count, err := s.store.Count(s.Context(), filter)
	if err != nil {
		s.Fatal(err)
	}

	return count
}

func TestListSelects(t *testing.T) {
	cases := map[string]struct {
		reason string
		filter instances.Filter
		want   []string
	}{
		"all":                 {"newest first, then by id", instances.Filter{}, []string{"e", "d", "c", "b", "a"}},
		"instance":            {"a page of one", instances.Filter{InstanceID: "c"}, []string{"c"}},
		"unknown instance":    {"an empty list is not an error", instances.Filter{InstanceID: "z"}, []string{}},
		"account":             {"of an account", instances.Filter{GlobalAccountID: "ga-2"}, []string{"e", "d"}},
		"subaccount":          {"of a subaccount", instances.Filter{SubAccountID: "sa-2"}, []string{"a"}},
		"provider's region":   {"of the provider's region", instances.Filter{Region: "us-east-1"}, []string{"a"}},
		"platform's region":   {"of the platform's region", instances.Filter{Region: "cf-us10"}, []string{"c"}},
		"name of plan":        {"operators use the name", instances.Filter{Plan: "azure"}, []string{"b"}},
		"ID of plan":          {"platforms use the ID", instances.Filter{Plan: "plan-2"}, []string{"b"}},
		"kind":                {"the newest operation counts, not an earlier one", instances.Filter{Kinds: []string{environment.KindProvision}}, []string{"e", "c", "a"}},
		"kinds":               {"any of several states", instances.Filter{Kinds: []string{environment.KindDeprovision, environment.KindProvision}}, []string{"e", "d", "c", "b", "a"}},
		"state":               {"failed instances", instances.Filter{States: []process.State{process.Failed}}, []string{"d"}},
		"states":              {"any of several values", instances.Filter{States: []process.State{process.Pending, process.InProgress}}, []string{"e", "b"}},
		"everything together": {"filters are combined", instances.Filter{GlobalAccountID: "ga", SubAccountID: "sa", Region: "eu-central-1", Plan: "aws", Kinds: []string{environment.KindProvision}, States: []process.State{process.Succeeded}}, []string{"c"}},
		"oldest":              {"oldest first, then by id", instances.Filter{Sort: instances.Oldest}, []string{"a", "b", "c", "d", "e"}},
		"search a Shoot":      {"a whole name", instances.Filter{Search: "c-a"}, []string{"a"}},
		"search in names":     {"the beginning; case does not matter", instances.Filter{Search: "NAm"}, []string{"e", "d", "c", "b", "a"}},
		"search inside":       {"not inside of names", instances.Filter{Search: "AME"}, []string{}},
		"search an ID":        {"a whole ID of an instance", instances.Filter{Search: "d"}, []string{"d"}},
		"search an account":   {"a whole ID of an account", instances.Filter{Search: "ga-2"}, []string{"e", "d"}},
		"search a subaccount": {"a whole ID of a subaccount", instances.Filter{Search: "sa-2"}, []string{"a"}},
		"search a runtime":    {"a whole ID of a runtime", instances.Filter{Search: "runtime-e"}, []string{"e"}},
		"search no runtime":   {"instances without a runtime do not match", instances.Filter{Search: "runtime"}, []string{}},
		"search of wildcards": {"wildcards of LIKE are plain characters", instances.Filter{Search: "%"}, []string{}},
		"anywhere, name":      {"case does not matter", instances.Filter{Search: "AME", Anywhere: true}, []string{"e", "d", "c", "b", "a"}},
		"anywhere, Shoot":     {"a part of a name", instances.Filter{Search: "-a", Anywhere: true, SubAccountID: "sa-2"}, []string{"a"}},
		"anywhere, runtime":   {"a part of an ID", instances.Filter{Search: "untime-e", Anywhere: true}, []string{"e"}},
		"anywhere, case":      {"case does not matter in IDs either", instances.Filter{Search: "UNTIME-E", Anywhere: true}, []string{"e"}},
		"anywhere, wildcards": {"wildcards of LIKE are plain characters", instances.Filter{Search: "%", Anywhere: true}, []string{}},
		"anywhere, no text":   {"without a text, it selects all", instances.Filter{Anywhere: true}, []string{"e", "d", "c", "b", "a"}},
		"name":                {"the whole name, in the same case", instances.Filter{Name: "Name"}, []string{}},
		"operation":           {"the newest operation only", instances.Filter{OperationID: "deprovision d"}, []string{"d"}},
		"former operation":    {"the newest operation only", instances.Filter{OperationID: "provision d"}, []string{}},
		"problem":             {"a part of the message, in any case", instances.Filter{Problem: "No Q"}, []string{"d"}},
		"reason":              {"the reason as a whole", instances.Filter{Problem: "ERR_QUOTA"}, []string{"d"}},
		"component":           {"the component as a whole", instances.Filter{Problem: "gardener"}, []string{"d"}},
		"no problem":          {"wildcards of LIKE are plain characters", instances.Filter{Problem: "_"}, []string{}},
		"service":             {"of a service", instances.Filter{ServiceID: "service-2"}, []string{"c"}},
		"dashboard":           {"by the URL", instances.Filter{DashboardURL: "https://c"}, []string{"c"}},
		"updated since":       {"the later of both changes, inclusive", instances.Filter{UpdatedSince: began.Add(time.Minute)}, []string{"e", "d", "c", "a"}},
		"updated before":      {"the later of both changes, exclusive", instances.Filter{UpdatedBefore: began.Add(time.Minute)}, []string{"b"}},
		"updated between":     {"both ends", instances.Filter{UpdatedSince: began.Add(time.Hour), UpdatedBefore: began.Add(3 * time.Hour)}, []string{"e"}},
		"contradiction":       {"filters are combined", instances.Filter{GlobalAccountID: "ga-2", Plan: "azure"}, []string{}},
	}

	each(t, func(s fixture) {
		for name, c := range cases {
			s.Run(name, func(t *testing.T) {
				s := s
				s.T = t
				c.filter.Limit = 9

				if diff := cmp.Diff(c.want, s.list(c.filter)); diff != "" {
					t.Errorf("%s: -want +got:\n%s", c.reason, diff)
				}

				c.filter.Limit = 0
				if count := s.count(c.filter); count != len(c.want) {
					t.Errorf("%s: the count is %d, want %d", c.reason, count, len(c.want))
				}
			})
		}
	})
}

func TestListReturnsTheNewestOperation(t *testing.T) {
	each(t, func(s fixture) {
		listed, err := s.store.List(s.Context(), instances.Filter{InstanceID: "d", Limit: 1})
		if err != nil || len(listed) != 1 {
			s.Fatalf("listed %v, %v", listed, err)
		}

		want := process.Record{
			ID: "deprovision d", Kind: environment.KindDeprovision, InstanceID: "d", State: process.Failed, Description: "for d",
			Stage: "stage", Step: "step", CreatedAt: began, UpdatedAt: began.Add(time.Minute),
			StartedAt: began, FinishedAt: began,
			Problem: process.Problem{Message: "no quota", Reason: "ERR_QUOTA", Component: "gardener"},
		}
		if diff := cmp.Diff(want, listed[0].Operation, cmpopts.EquateEmpty()); diff != "" {
			s.Errorf("-want +got:\n%s", diff)
		}

		got, err := s.store.Get(s.Context(), s.db.Reader(), "d")
		got.Request = environment.Request{} // lists do not decrypt the request

		if diff := cmp.Diff(got, listed[0].Instance); diff != "" || err != nil {
			s.Errorf("listed and read instances differ, %v, -read +listed:\n%s", err, diff)
		}
	})
}

// TestGetAll reads several instances with their requests. A row that was changed outside of the broker does not hide the others.
func TestGetAll(t *testing.T) {
	each(t, func(s fixture) {
		inTx(s.T, s.db, func(tx storage.Tx) {
			if _, err := storage.Exec(s.Context(), tx, `UPDATE instances SET shoot_name = 'another' WHERE id = 'b'`); err != nil {
				s.Error(err)
			}
		})

		found, unreadable, err := s.store.GetAll(s.Context(), s.db.Reader(), []string{"a", "b", "missing"})
		if err != nil || len(found) != 1 || len(unreadable) != 1 || unreadable["b"] == nil {
			s.Fatalf("found %v, unreadable %v, %v", found, unreadable, err)
		}

		got, err := s.store.Get(s.Context(), s.db.Reader(), "a")
		if diff := cmp.Diff(got, found["a"]); diff != "" || err != nil {
			s.Errorf("read one and read several differ, %v, -one +several:\n%s", err, diff)
		}
	})
}

func TestPages(t *testing.T) {
	each(t, func(s fixture) {
		filter := instances.Filter{Limit: 2, Plan: "plan"}

		byKey := [][]string{}

		for {
			listed, err := s.store.List(s.Context(), filter)
			if err != nil {
				s.Fatal(err)
			}

			if len(listed) == 0 {
				break
			}

			last := listed[len(listed)-1].Instance
			byKey = append(byKey, s.list(filter))
			filter.Before, filter.BeforeID = last.CreatedAt, last.ID

			if s.count(filter) != 4 {
				s.Errorf("the count for page %d is %d, want the total of all pages", len(byKey), s.count(filter))
			}

			// An instance that is inserted between two pages does not shift the later page.
			s.insert("new"+last.ID, 3*time.Hour, func(i *environment.Instance) { i.PlanID, i.PlanName = "other", "other" })
			s.accept("new"+last.ID, environment.KindProvision)
		}

		if diff := cmp.Diff([][]string{{"e", "d"}, {"c", "a"}}, byKey); diff != "" {
			s.Errorf("pages by key, -want +got:\n%s", diff)
		}

		for offset, want := range map[int][]string{0: {"e", "d"}, 1: {"d", "c"}, 3: {"a"}, 9: {}} {
			if diff := cmp.Diff(want, s.list(instances.Filter{Limit: 2, Offset: offset, Plan: "plan"})); diff != "" {
				s.Errorf("from offset %d, -want +got:\n%s", offset, diff)
			}
		}
	})
}

func TestPagesSplitInstancesOfTheSameTime(t *testing.T) {
	each(t, func(s fixture) {
		if diff := cmp.Diff([]string{"a"}, s.list(instances.Filter{Limit: 9, Before: began, BeforeID: "b"})); diff != "" {
			s.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestSorts reads pages of two instances in each order. Each page starts after the last instance of the previous page. The loop is
// limited, so that the test also ends if the list repeats itself.
func TestSorts(t *testing.T) {
	cases := map[instances.Sort][]string{
		"":                            {"e", "d", "c", "b", "a"},
		instances.Newest:              {"e", "d", "c", "b", "a"},
		instances.Oldest:              {"a", "b", "c", "d", "e"},
		instances.ByName:              {"e", "a", "c", "d", "b"},
		instances.ByNameDescending:    {"b", "d", "c", "a", "e"},
		instances.ByPlan:              {"a", "c", "d", "e", "b"},
		instances.ByPlanDescending:    {"b", "e", "d", "c", "a"},
		instances.ByRegion:            {"b", "c", "d", "e", "a"},
		instances.ByRegionDescending:  {"a", "e", "d", "c", "b"},
		instances.ByAccount:           {"a", "b", "c", "d", "e"},
		instances.ByAccountDescending: {"e", "d", "c", "b", "a"},
	}

	for _, sort := range instances.Sorts() {
		if cases[sort] == nil {
			t.Errorf("the order %s has no case", sort)
		}
	}

	each(t, func(s fixture) {
		// Names that differ only in case are sorted by ID. A comparison by bytes sorts a hyphen before letters.
		for id, name := range map[string]string{"a": "Team", "b": "west", "c": "team", "d": "team-x", "e": "East"} {
			inTx(s.T, s.db, func(tx storage.Tx) {
				if _, err := storage.Exec(s.Context(), tx, `UPDATE instances SET name = ? WHERE id = ?`, name, id); err != nil {
					s.Error(err)
				}
			})
		}

		for sort, want := range cases {
			var got []string

			for filter := (instances.Filter{Sort: sort, Limit: 2}); len(got) <= len(want); {
				page, err := s.store.List(s.Context(), filter)
				if err != nil {
					s.Fatal(err)
				}

				if len(page) == 0 {
					break
				}

				for _, listed := range page {
					got = append(got, listed.Instance.ID)
				}

				filter = filter.After(page[len(page)-1].Instance)
			}

			if diff := cmp.Diff(want, got); diff != "" {
				s.Errorf("%s: -want +got\n%s", sort, diff)
			}
		}
	})
}

// TestSearchesAreNotPrepared checks that PostgreSQL plans each search for its text. A plan for all texts would read all instances.
func TestSearchesAreNotPrepared(t *testing.T) {
	each(t, func(s fixture) {
		if s.db.Driver() != storage.DriverPostgres {
			s.Skip("SQLite plans without the values of arguments")
		}

		s.list(instances.Filter{Search: "name", Limit: 9})
		s.count(instances.Filter{Search: "name"})
		s.list(instances.Filter{Name: "name", Limit: 9})

		prepared, err := storage.Select[string](s.Context(), s.db.Reader(), `SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%instances.name%'`)
		if err != nil || len(prepared) != 1 || strings.Contains(prepared[0], "shoot_name = ") {
			s.Errorf("prepared statements: %q, %v, want that of the filter by name only", prepared, err)
		}
	})
}

func TestRequestIsSealedAndBoundToItsInstance(t *testing.T) {
	each(t, func(s fixture) {
		s.insert("f", 0, func(i *environment.Instance) { i.Request.Parameters = json.RawMessage(`{"password":"hush"}`) })

		stored, err := storage.Get[string](s.Context(), s.db.Reader(), `SELECT request FROM instances WHERE id = 'f'`)
		if err != nil || strings.Contains(stored, "hush") || !strings.HasPrefix(stored, "test:") {
			s.Errorf("the request is stored as %q (%v), want an envelope that names its key", stored, err)
		}

		inTx(s.T, s.db, func(tx storage.Tx) {
			if _, err := storage.Exec(s.Context(), tx, `UPDATE instances SET request = ? WHERE id = 'a'`, stored); err != nil {
				s.Error(err)
			}
		})

		if _, err := s.store.Get(s.Context(), s.db.Reader(), "a"); err == nil || !strings.Contains(err.Error(), "reading instance a") {
			s.Errorf("a request moved to another instance returns %v", err)
		}

		if listed, err := s.store.List(s.Context(), instances.Filter{Limit: 9, InstanceID: "a"}); err != nil || len(listed) != 1 {
			s.Errorf("a list lacks an instance whose request cannot be decrypted: %v, %v", listed, err)
		}
	})
}

func TestSetRuntimeOfARemovedInstance(t *testing.T) {
	each(t, func(s fixture) {
		by := storagetest.Hold(s, s.db, s.operations, "held", "a")

		if err := s.store.SetRuntime(s.Context(), by, environment.Instance{ID: "z"}, "runtime"); err != nil {
			s.Errorf("the call fails because the instance was removed in the meantime: %v", err)
		}

		if err := s.store.SetRuntime(s.Context(), by, environment.Instance{ID: "a"}, "runtime"); err != nil {
			s.Error(err)
		}

		if other, err := s.store.Get(s.Context(), s.db.Reader(), "b"); err != nil || other.RuntimeID != "" {
			s.Errorf("another instance was assigned runtime %q, %v", other.RuntimeID, err)
		}
	})
}

func TestSummaries(t *testing.T) {
	each(t, func(s fixture) {
		got, err := s.store.Summaries(s.Context(), []string{"b", "e", "nobody"})
		if diff := cmp.Diff(map[string]instances.Summary{"b": {Name: "name", PlanID: "plan-2"}, "e": {Name: "name", PlanID: "plan"}}, got); diff != "" || err != nil {
			s.Errorf("summaries, %v: -want +got\n%s", err, diff)
		}

		if got, err := s.store.Summaries(s.Context(), nil); len(got) != 0 || err != nil {
			s.Errorf("an empty list of IDs must return no summaries: %v, %v", got, err)
		}
	})
}

func TestDurations(t *testing.T) {
	each(t, func(s fixture) {
		s.insert("retried", 3*time.Hour, func(*environment.Instance) {})

		inTx(s.T, s.db, func(tx storage.Tx) {
			if err := s.operations.Accept(s.Context(), tx, process.New{
				ID: "retry", Kind: environment.KindProvision, InstanceID: "retried", PredecessorID: "first", At: began, Payload: json.RawMessage(`{}`),
			}); err != nil {
				s.Error(err)
			}
		})

		for _, work := range storagetest.Claim(s, s.operations, process.Claim{
			Owner: "replica", Limit: 9, Now: began, Until: began.Add(time.Hour),
		}, environment.KindProvision) {
			work.Record.State, work.Record.FinishedAt = process.Succeeded, began.Add(5*time.Minute)

			if _, err := s.operations.Save(s.Context(), process.Progress{Record: work.Record, Release: true, Now: began}); err != nil {
				s.Fatal(err)
			}
		}

		for id, description := range map[string]string{
			"a": environment.TextDryRun + "nothing was called", "c": environment.TextPreempted + "the runtime is being removed", "d": "Kyma 2.0.0",
		} {
			upgrade := s.begin(id, environment.KindUpgradeKyma)
			upgrade.State, upgrade.FinishedAt, upgrade.Description = process.Succeeded, began.Add(time.Minute), description

			if _, err := s.operations.Save(s.Context(), process.Progress{Record: upgrade, Release: true, Now: began}); err != nil {
				s.Fatal(err)
			}
		}

		durations, err := s.store.Durations(s.Context())
		if err != nil {
			s.Fatal(err)
		}

		// Durations excludes the retry, the failed removal of d, the unfinished removal of b, and the upgrades of a and c, which have changed
		// nothing.
		want := []instances.Duration{
			{OperationID: "provision a", Kind: "provision", PlanID: "plan", Started: began},
			{OperationID: "provision b", Kind: "provision", PlanID: "plan-2", Started: began},
			{OperationID: "provision c", Kind: "provision", PlanID: "plan", Started: began},
			{OperationID: "provision d", Kind: "provision", PlanID: "plan", Started: began},
			{OperationID: "provision e", Kind: "provision", PlanID: "plan", Started: began, Took: 5 * time.Minute},
			{OperationID: "upgradeKyma d", Kind: "upgradeKyma", PlanID: "plan", Started: began, Took: time.Minute},
		}
		byID := cmpopts.SortSlices(func(one, other instances.Duration) bool { return one.OperationID < other.OperationID })

		if diff := cmp.Diff(want, durations, byID); diff != "" {
			s.Errorf("durations: -want +got\n%s", diff)
		}
	})
}

// TestDurationsOfEachKind reads durations after many later operations of another kind.
func TestDurationsOfEachKind(t *testing.T) {
	each(t, func(s fixture) {
		inTx(s.T, s.db, func(tx storage.Tx) {
			for i := range 1000 {
				if err := s.operations.Accept(s.Context(), tx, process.New{
					ID: fmt.Sprint("bind ", i), Kind: environment.KindBind, InstanceID: fmt.Sprint("binding ", i), At: began.Add(time.Hour),
					Payload: json.RawMessage(`{}`),
				}); err != nil {
					s.Fatal(err)
				}
			}
		})

		durations, err := s.store.Durations(s.Context())
		if err != nil || len(durations) != 4 || durations[0].Kind != environment.KindProvision {
			s.Errorf("got %+v, %v, want the four provisionings", durations, err)
		}
	})
}
