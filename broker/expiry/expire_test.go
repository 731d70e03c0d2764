package expiry_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/broker/jobs/jobstest"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

const (
	day = 24 * time.Hour
	why = "a test"
)

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture is an Expirer with its stores. No engine runs: operations end when the test calls end.
type fixture struct {
	*testing.T
	expiry.Expirer

	entries *auditlog.Store
	clock   *clocktesting.FakePassiveClock
	wakes   int
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	keys := storagetest.Keys(t)

	ops, err := operations.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	rows, err := instances.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	entries, err := auditlog.Open(t.Context(), db, day)
	if err != nil {
		t.Fatal(err)
	}

	b := &fixture{T: t, entries: entries, clock: clocktesting.NewFakePassiveClock(began)}
	b.Expirer = expiry.Expirer{
		DB: db, Instances: rows, Operations: ops, Clock: b.clock, Wake: func() { b.wakes++ },
		Periods: expiry.Periods{"trial": 14 * day, "free": 0}, Recorder: audit.NewRecorder(entries, db, b.clock, logging.Discard()),
	}

	return b
}

// create stores an instance of the plan and a successful provisioning.
func (b *fixture) create(id, plan string) {
	b.Helper()
	b.createIn(id, plan, process.Succeeded)
}

// createIn stores an instance of the plan and a provisioning that has ended in the given state.
func (b *fixture) createIn(id, plan string, state process.State) {
	b.Helper()

	instance := environment.Instance{
		ID: id, PlanName: plan, ShootName: "c-" + id, CreatedAt: b.clock.Now(), UpdatedAt: b.clock.Now(),
		ExpiresAt: b.Periods.End(plan, b.clock.Now()),
	}

	if err := b.DB.InTx(b.Context(), func(tx storage.Tx) error {
		return storagetest.Insert(b.Context(), tx, b.Instances, instance)
	}); err != nil {
		b.Fatal(err)
	}

	b.end(b.accept(environment.KindProvision, instance), state)
}

func (b *fixture) accept(kind string, instance environment.Instance) string {
	b.Helper()

	operation, err := environment.NewOperation(kind, instance, nil, b.clock.Now())
	if err != nil {
		b.Fatal(err)
	}

	if err := b.DB.InTx(b.Context(), func(tx storage.Tx) error { return b.Operations.Accept(b.Context(), tx, operation) }); err != nil {
		b.Fatal(err)
	}

	return operation.ID
}

func (b *fixture) end(operation string, state process.State) {
	b.Helper()

	for _, work := range storagetest.Claim(b, b.Operations, process.Claim{
		Owner: "test", Limit: 100, Now: b.clock.Now(), Until: b.clock.Now().Add(time.Minute),
	}, environment.Kinds()...) {
		progress := process.Progress{Record: work.Record, Release: true, Now: b.clock.Now()}
		progress.Record.NextRun = b.clock.Now()

		if work.Record.ID == operation {
			progress.Record.State, progress.Record.FinishedAt = state, b.clock.Now()
		}

		if _, err := b.Operations.Save(b.Context(), progress); err != nil {
			b.Fatal(err)
		}
	}
}

// stored returns the instance and its suspensions, newest first.
func (b *fixture) stored(id string) (environment.Instance, []process.Record) {
	b.Helper()

	instance, err := b.Instances.Get(b.Context(), b.DB.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	all, err := b.Operations.OfInstance(b.Context(), b.DB.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	var suspensions []process.Record

	for _, record := range all {
		if record.Kind == environment.KindSuspend {
			suspensions = append(suspensions, record)
		}
	}

	return instance, suspensions
}

// suspended marks the instance as suspended and ends the suspension successfully.
func (b *fixture) suspended(id, operation string) {
	b.Helper()

	instance, _ := b.stored(id)
	instance.Suspended = true

	if err := b.DB.InTx(b.Context(), func(tx storage.Tx) error { return b.Instances.Update(b.Context(), tx, instance) }); err != nil {
		b.Fatal(err)
	}

	b.end(operation, process.Succeeded)
}

func TestOperatorExpiresInstance(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixture(t, db)
		b.create("one", "free")

		first, err := b.Expire(t.Context(), "one", why)
		if err != nil {
			t.Fatal(err)
		}

		written, err := b.entries.List(t.Context(), auditlog.Filter{InstanceID: "one", Limit: 9})
		if err != nil || len(written) != 1 || written[0].Action != auditlog.ActionExpire || written[0].OperationID != first || written[0].Reason != why {
			t.Errorf("the audit log contains %+v, %v, want one expiry", written, err)
		}

		b.clock.SetTime(began.Add(time.Hour))

		again, err := b.Expire(t.Context(), "one", why)
		if err != nil || again != first {
			t.Errorf("a repeated call during suspension %q returns %q, %v, want the same suspension", first, again, err)
		}

		instance, _ := b.stored("one")
		if !instance.ExpiredAt.Equal(began) || !instance.ExpiresAt.Equal(began) {
			t.Errorf("expired at %s, lifetime until %s, want both at the time of the first call", instance.ExpiredAt, instance.ExpiresAt)
		}

		timeline, err := b.Operations.Timeline(t.Context(), first)
		if err != nil || timeline[0].Message != why {
			t.Errorf("the timeline lacks the reason: %v, %v", timeline, err)
		}

		b.end(first, process.Failed)

		second, err := b.Expire(t.Context(), "one", why)
		if err != nil || second == first || second == "" {
			t.Errorf("after a failure the call returns %q, %v, want a new suspension", second, err)
		}

		b.suspended("one", second)

		if nothing, err := b.Expire(t.Context(), "one", why); err != nil || nothing != "" {
			t.Errorf("for an instance without a runtime, the call returns %q, %v, want no suspension", nothing, err)
		}

		if b.wakes != 2 {
			t.Errorf("the engine was woken %d times, want 2", b.wakes)
		}
	})
}

func TestSuspendedInstanceExpiresOnce(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixture(t, db)
		b.create("one", "trial")

		instance, _ := b.stored("one")

		b.suspended("one", b.accept(environment.KindSuspend, instance))

		for range 2 {
			if operation, err := b.Expire(t.Context(), "one", why); err != nil || operation != "" {
				t.Errorf("the call returns %q, %v, want no suspension", operation, err)
			}
		}

		if instance, _ = b.stored("one"); !instance.Expired() {
			t.Error("the suspended instance was not marked as expired")
		}

		written, err := b.entries.List(t.Context(), auditlog.Filter{InstanceID: "one", Limit: 9})
		if err != nil || len(written) != 1 || written[0].Action != auditlog.ActionExpire || written[0].Status != http.StatusOK {
			t.Errorf("the audit log has %+v, %v, want one expiry", written, err)
		}
	})
}

func TestExpireRejects(t *testing.T) {
	b := newFixture(t, storagetest.SQLite(t))
	b.create("lasts", "aws")
	b.create("going", "trial")

	going, _ := b.stored("going")

	b.accept(environment.KindDeprovision, going)

	for id, c := range map[string]struct {
		reason string
		want   failure.Kind
	}{
		"none":  {"the instance does not exist", failure.NotFound},
		"lasts": {"the plan has no limited lifetime", failure.Invalid},
		"going": {"the instance is being deleted", failure.Conflict},
	} {
		if _, err := b.Expire(t.Context(), id, why); !failure.Is(err, c.want) {
			t.Errorf("%s: %s: got %v", id, c.reason, err)
		}
	}

	for _, id := range []string{"lasts", "going"} {
		if instance, _ := b.stored(id); instance.Expired() {
			t.Errorf("%s has expired, although the call failed", id)
		}
	}
}

func TestDueInstancesExpire(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixture(t, db)

		const many = 120 // more than one page
		for i := range many {
			b.create("trial-"+strconv.Itoa(i), "trial")
		}

		b.create("lasts", "aws")
		b.create("by-hand", "free")
		b.run()

		if _, suspensions := b.stored("trial-0"); len(suspensions) != 0 {
			t.Error("a new trial instance has expired")
		}

		b.clock.SetTime(began.Add(14 * day))

		due, err := b.Job(0).Due(t.Context())
		if err != nil || len(due.Items) != many || due.Items[0].InstanceID != due.Items[0].ID {
			t.Errorf("%d items are due, %v, want each to name its instance, so that a dry run finds protected ones", len(due.Items), err)
		}

		var replicas sync.WaitGroup
		for range 3 {
			replicas.Go(func() { _ = jobstest.Run(t.Context(), b.Job(0)) }) // a replica can lose a race; the next search finds the rest
		}

		replicas.Wait()
		b.run()

		got := map[int]int{}

		for i := range many {
			instance, suspensions := b.stored("trial-" + strconv.Itoa(i))
			if instance.Expired() {
				got[len(suspensions)]++
			}
		}

		if diff := cmp.Diff(map[int]int{1: many}, got); diff != "" {
			t.Errorf("number of instances by number of suspensions: -want +got\n%s", diff)
		}

		for _, id := range []string{"lasts", "by-hand"} {
			if instance, _ := b.stored(id); instance.Expired() {
				t.Errorf("%s expired, but has no limited lifetime", id)
			}
		}
	})
}

func (b *fixture) run() {
	b.Helper()

	if err := jobstest.Run(b.Context(), b.Job(0)); err != nil {
		b.Error(err)
	}
}

func TestFailedSuspensionIsRetriedLater(t *testing.T) {
	b := newFixture(t, storagetest.SQLite(t))
	b.create("one", "trial")
	b.clock.SetTime(began.Add(14 * day))
	b.run()

	_, suspensions := b.stored("one")
	b.end(suspensions[0].ID, process.Failed)
	b.clock.SetTime(began.Add(14*day + 59*time.Minute))
	b.run()

	if _, suspensions := b.stored("one"); len(suspensions) != 1 {
		t.Errorf("the suspension was retried too early")
	}

	b.clock.SetTime(began.Add(14*day + time.Hour))
	b.run()

	_, suspensions = b.stored("one")
	if len(suspensions) != 2 {
		t.Fatalf("the suspension was not retried")
	}

	b.suspended("one", suspensions[0].ID)
	b.clock.SetTime(began.Add(20 * day))
	b.run()

	if _, suspensions := b.stored("one"); len(suspensions) != 2 {
		t.Errorf("a suspended instance was suspended again")
	}
}

func TestSuspendedInstancesExpireWhenDue(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixture(t, db)

		for _, id := range []string{"suspended", "half resumed"} {
			b.create(id, "trial")
			instance, _ := b.stored(id)
			b.suspended(id, b.accept(environment.KindSuspend, instance))
		}

		half, _ := b.stored("half resumed")
		b.end(b.accept(environment.KindResume, half), process.Failed)

		b.clock.SetTime(began.Add(14 * day))
		b.run()
		b.run()

		instance, suspensions := b.stored("suspended")
		if !instance.Expired() || len(suspensions) != 1 {
			t.Errorf("suspended instance: expired at %s with %d suspensions, want 1, because it has no runtime", instance.ExpiredAt, len(suspensions))
		}

		instance, suspensions = b.stored("half resumed")
		if !instance.Expired() || len(suspensions) != 2 {
			t.Fatalf("half resumed instance: expired at %s with %d suspensions, want 2, because it may have a runtime", instance.ExpiredAt, len(suspensions))
		}

		b.end(suspensions[0].ID, process.Failed)
		b.clock.SetTime(began.Add(15 * day))
		b.run()

		if _, suspensions = b.stored("half resumed"); len(suspensions) != 3 {
			t.Errorf("%d suspensions after a failure, want 3", len(suspensions))
		}
	})
}

// TestFailedCreationExpires expires an instance whose creation has failed and has perhaps left a runtime.
func TestFailedCreationExpires(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixture(t, db)
		b.createIn("one", "trial", process.Failed)
		b.clock.SetTime(began.Add(14 * day))
		b.run()

		instance, suspensions := b.stored("one")
		if !instance.Expired() || instance.Suspended || len(suspensions) != 1 {
			t.Errorf("expired at %s, suspended: %t, with %d suspensions, want 1, which removes the runtime", instance.ExpiredAt, instance.Suspended, len(suspensions))
		}
	})
}

func TestPeriods(t *testing.T) {
	periods := expiry.Periods{"trial": 14 * day, "free": 0}

	if !periods.Has("free") || periods.Has("aws") || !periods.End("free", began).IsZero() || !periods.End("aws", began).IsZero() ||
		!periods.End("trial", began).Equal(began.Add(14*day)) || periods.Check() != nil {
		t.Error("want no end for a period of 0 or none, and an end after 14 days for a period of 14 days")
	}

	for _, wrong := range []expiry.Periods{{"trial": -1}, {" ": 1}} {
		if wrong.Check() == nil {
			t.Errorf("%v is accepted, want an error", wrong)
		}
	}
}

// TestPlansWithoutLifetimeAreNotDue removes a plan from Periods. Its instances must not count as due: they would hold the job, and a dry
// run would name clusters that the job does not remove. An instance that has expired before stays due until its cluster is removed.
func TestPlansWithoutLifetimeAreNotDue(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixture(t, db)
		b.create("kept", "trial")
		b.create("expired", "trial")
		b.clock.SetTime(began.Add(14 * day))

		suspension, err := b.Expire(t.Context(), "expired", why)
		if err != nil {
			t.Fatal(err)
		}

		b.end(suspension, process.Failed)
		b.Periods = expiry.Periods{"free": 0}
		b.clock.SetTime(began.Add(15 * day))

		due, err := b.Job(0).Due(t.Context())
		if err != nil || len(due.Items) != 1 || due.Items[0].ID != "expired" {
			t.Errorf("%d items are due, %v, want only the expired instance", len(due.Items), err)
		}

		b.run()

		if instance, suspensions := b.stored("kept"); instance.Expired() || len(suspensions) != 0 {
			t.Errorf("kept: expired at %s with %d suspensions", instance.ExpiredAt, len(suspensions))
		}

		if _, suspensions := b.stored("expired"); len(suspensions) != 2 {
			t.Errorf("expired: %d suspensions, want 2, because the first has failed", len(suspensions))
		}
	})
}

// TestChangeOfPlanMovesTheExpiry ends the lifetime of an instance while an update changes its plan. The job decides after the
// update, even if it has listed the instance before.
func TestChangeOfPlanMovesTheExpiry(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		plan      string
		ends      time.Time
		succeeded bool
		want      bool // expires
	}{
		"to a plan without a lifetime": {"the new plan does not expire", "aws", time.Time{}, true, false},
		"to a longer lifetime":         {"the new lifetime has not ended", "free", began.Add(30 * day), true, false},
		"failed":                       {"the instance keeps its plan", "aws", time.Time{}, false, true},
		"other changes":                {"the update does not move the end", "trial", began.Add(14 * day), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, storagetest.SQLite(t))
			b.create("one", "trial")

			instance, _ := b.stored("one")
			update := environment.UnchangedUpdate(instance)
			update.PlanName, update.ExpiresAt = c.plan, c.ends

			b.clock.SetTime(began.Add(14 * day))

			listed, err := b.Job(0).Due(t.Context()) // before the update
			if err != nil || len(listed.Items) != 1 {
				t.Fatalf("%d items are due, %v", len(listed.Items), err)
			}

			operation := b.acceptUpdate(instance, update)

			b.run()
			b.do(listed.Items[0])

			if instance, _ := b.stored("one"); instance.Expired() != (c.plan == "trial") {
				t.Errorf("%s: during the update, expired: %t", c.reason, instance.Expired())
			}

			if c.succeeded {
				b.apply("one", update)
				b.end(operation, process.Succeeded)
			} else {
				b.end(operation, process.Failed)
			}

			b.do(listed.Items[0])
			b.run()

			if instance, _ := b.stored("one"); instance.Expired() != c.want {
				t.Errorf("%s: expired: %t", c.reason, instance.Expired())
			}
		})
	}
}

// acceptUpdate stores a pending update of the instance.
func (b *fixture) acceptUpdate(instance environment.Instance, update environment.Update) string {
	b.Helper()

	operation, err := environment.NewOperation(environment.KindUpdate, instance, &update, b.clock.Now())
	if err != nil {
		b.Fatal(err)
	}

	if err := b.DB.InTx(b.Context(), func(tx storage.Tx) error { return b.Operations.Accept(b.Context(), tx, operation) }); err != nil {
		b.Fatal(err)
	}

	return operation.ID
}

// apply applies the update to the row of the instance.
func (b *fixture) apply(id string, update environment.Update) {
	b.Helper()

	instance, _ := b.stored(id)

	updated, err := update.Apply(instance)
	if err != nil {
		b.Fatal(err)
	}

	if err := b.DB.InTx(b.Context(), func(tx storage.Tx) error { return b.Instances.Update(b.Context(), tx, updated) }); err != nil {
		b.Fatal(err)
	}
}

// do processes one item.
func (b *fixture) do(item jobs.Item) {
	b.Helper()

	if _, err := item.Do(b.Context(), why); err != nil {
		b.Error(err)
	}
}
