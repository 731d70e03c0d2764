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

// bench is an Expirer whose operations are carried by the test.
type bench struct {
	*testing.T
	expiry.Expirer

	entries *auditlog.Store
	clock   *clocktesting.FakePassiveClock
	wakes   int
}

func newBench(t *testing.T, db *storage.DB) *bench {
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

	b := &bench{T: t, entries: entries, clock: clocktesting.NewFakePassiveClock(began)}
	b.Expirer = expiry.Expirer{
		DB: db, Instances: rows, Operations: ops, Clock: b.clock, Wake: func() { b.wakes++ },
		Periods: expiry.Periods{"trial": 14 * day, "free": 0}, Recorder: audit.NewRecorder(entries, db, b.clock, logging.Discard()),
	}

	return b
}

// made makes an instance of the plan that is ready.
func (b *bench) made(id, plan string) {
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

	b.end(b.accept(environment.KindProvision, instance), process.Succeeded)
}

// accept accepts an operation and returns its id.
func (b *bench) accept(kind string, instance environment.Instance) string {
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

// end lets an operation end in the state.
func (b *bench) end(operation string, state process.State) {
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

// stored returns the instance, and its operations of kind suspend, the newest first.
func (b *bench) stored(id string) (environment.Instance, []process.Record) {
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

// suspended is the last step of a suspension, and its end.
func (b *bench) suspended(id, operation string) {
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
		b := newBench(t, db)
		b.made("one", "free")

		first, err := b.Expire(t.Context(), "one", why)
		if err != nil {
			t.Fatal(err)
		}

		written, err := b.entries.List(t.Context(), auditlog.Filter{InstanceID: "one", Limit: 9})
		if err != nil || len(written) != 1 || written[0].Action != auditlog.ActionExpire || written[0].OperationID != first || written[0].Reason != why {
			t.Errorf("the audit log has %+v, %v", written, err)
		}

		b.clock.SetTime(began.Add(time.Hour))

		again, err := b.Expire(t.Context(), "one", why)
		if err != nil || again != first {
			t.Errorf("while it runs it is the same: %q, %q, %v", first, again, err)
		}

		instance, _ := b.stored("one")
		if !instance.ExpiredAt.Equal(began) || !instance.ExpiresAt.Equal(began) {
			t.Errorf("it expired once: at %s, for %s", instance.ExpiredAt, instance.ExpiresAt)
		}

		timeline, err := b.Operations.Timeline(t.Context(), first)
		if err != nil || timeline[0].Message != why {
			t.Errorf("the timeline has the reason: %v, %v", timeline, err)
		}

		b.end(first, process.Failed)

		second, err := b.Expire(t.Context(), "one", why)
		if err != nil || second == first || second == "" {
			t.Errorf("after a failure it starts again: %q, %v", second, err)
		}

		b.suspended("one", second)

		if nothing, err := b.Expire(t.Context(), "one", why); err != nil || nothing != "" {
			t.Errorf("once the runtime is gone there is nothing to do: %q, %v", nothing, err)
		}

		if b.wakes != 2 {
			t.Errorf("woken %d times for two operations", b.wakes)
		}
	})
}

func TestASuspendedInstanceExpiresOnce(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newBench(t, db)
		b.made("one", "trial")

		instance, _ := b.stored("one")

		b.suspended("one", b.accept(environment.KindSuspend, instance))

		for range 2 {
			if operation, err := b.Expire(t.Context(), "one", why); err != nil || operation != "" {
				t.Errorf("the runtime is gone already: %q, %v", operation, err)
			}
		}

		if instance, _ = b.stored("one"); !instance.Expired() {
			t.Error("a suspended instance does not expire")
		}

		written, err := b.entries.List(t.Context(), auditlog.Filter{InstanceID: "one", Limit: 9})
		if err != nil || len(written) != 1 || written[0].Action != auditlog.ActionExpire || written[0].Status != http.StatusOK {
			t.Errorf("the audit log has one entry of the expiry: %+v, %v", written, err)
		}
	})
}

func TestExpirationsThatAreRefused(t *testing.T) {
	b := newBench(t, storagetest.SQLite(t))
	b.made("lasts", "aws")
	b.made("going", "trial")

	going, _ := b.stored("going")

	b.accept(environment.KindDeprovision, going)

	for id, c := range map[string]struct {
		reason string
		want   failure.Kind
	}{
		"none":  {"nobody has ordered it", failure.NotFound},
		"lasts": {"its plan promises to last", failure.Invalid},
		"going": {"it is being deleted", failure.Conflict},
	} {
		if _, err := b.Expire(t.Context(), id, why); !failure.Is(err, c.want) {
			t.Errorf("%s: %s: got %v", id, c.reason, err)
		}
	}

	for _, id := range []string{"lasts", "going"} {
		if instance, _ := b.stored(id); instance.Expired() {
			t.Errorf("%s has expired all the same", id)
		}
	}
}

func TestDueInstancesExpire(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newBench(t, db)

		const many = 120 // more than a page
		for i := range many {
			b.made("trial-"+strconv.Itoa(i), "trial")
		}

		b.made("lasts", "aws")
		b.made("by-hand", "free")
		b.run()

		if _, suspensions := b.stored("trial-0"); len(suspensions) != 0 {
			t.Error("a trial expired at once")
		}

		b.clock.SetTime(began.Add(14 * day))

		var replicas sync.WaitGroup
		for range 3 {
			replicas.Go(func() { _ = b.ExpireDue(t.Context()) }) // one may lose a race; the next search finds the rest
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
			t.Errorf("instances by the number of their suspensions: -want +got\n%s", diff)
		}

		for _, id := range []string{"lasts", "by-hand"} {
			if instance, _ := b.stored(id); instance.Expired() {
				t.Errorf("%s has no end and expired", id)
			}
		}
	})
}

// run looks once for instances whose time is over.
func (b *bench) run() {
	b.Helper()

	if err := b.ExpireDue(b.Context()); err != nil {
		b.Error(err)
	}
}

func TestFailedSuspensionIsRetriedLater(t *testing.T) {
	b := newBench(t, storagetest.SQLite(t))
	b.made("one", "trial")
	b.clock.SetTime(began.Add(14 * day))
	b.run()

	_, suspensions := b.stored("one")
	b.end(suspensions[0].ID, process.Failed)
	b.clock.SetTime(began.Add(14*day + 59*time.Minute))
	b.run()

	if _, suspensions := b.stored("one"); len(suspensions) != 1 {
		t.Errorf("it was tried again at once")
	}

	b.clock.SetTime(began.Add(14*day + time.Hour))
	b.run()

	_, suspensions = b.stored("one")
	if len(suspensions) != 2 {
		t.Fatalf("it was not tried again")
	}

	b.suspended("one", suspensions[0].ID)
	b.clock.SetTime(began.Add(20 * day))
	b.run()

	if _, suspensions := b.stored("one"); len(suspensions) != 2 {
		t.Errorf("it is suspended, and was suspended again")
	}
}

func TestAnInstanceWithoutItsRuntimeExpiresToo(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newBench(t, db)

		for _, id := range []string{"suspended", "half resumed"} {
			b.made(id, "trial")
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
			t.Errorf("nobody brings it back, and there is nothing to remove: expired at %s, %d suspensions", instance.ExpiredAt, len(suspensions))
		}

		instance, suspensions = b.stored("half resumed")
		if !instance.Expired() || len(suspensions) != 2 {
			t.Fatalf("what its resumption has made goes: expired at %s, %d suspensions", instance.ExpiredAt, len(suspensions))
		}

		b.end(suspensions[0].ID, process.Failed)
		b.clock.SetTime(began.Add(15 * day))
		b.run()

		if _, suspensions = b.stored("half resumed"); len(suspensions) != 3 {
			t.Errorf("and is tried again: %d suspensions", len(suspensions))
		}
	})
}

func TestPeriods(t *testing.T) {
	periods := expiry.Periods{"trial": 14 * day, "free": 0}

	if !periods.Has("free") || periods.Has("aws") || !periods.End("free", began).IsZero() || !periods.End("aws", began).IsZero() ||
		!periods.End("trial", began).Equal(began.Add(14*day)) || periods.Check() != nil {
		t.Error("a period of 0 bounds nothing, and a plan without one lasts")
	}

	for _, wrong := range []expiry.Periods{{"trial": -1}, {" ": 1}} {
		if wrong.Check() == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
}
