package auditlog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// day is the retention period of the tests.
const day = 24 * time.Hour

// removal returns a Removal for which all objects are gone, except those whose key begins with "kept". The named operations must
// stay.
func removal(named ...string) operations.Removal {
	return operations.Removal{
		Subjects: func(_ context.Context, _ storage.Tx, keys []string) (map[string]operations.Subject, error) {
			subjects := map[string]operations.Subject{}

			for _, key := range keys {
				if subjects[key] = operations.Gone; strings.HasPrefix(key, "kept") {
					subjects[key] = operations.Present
				}
			}

			return subjects, nil
		},
		Named: func(_ context.Context, _ storage.Tx, ids []string) ([]string, error) {
			return slices.DeleteFunc(named, func(id string) bool { return !slices.Contains(ids, id) }), nil
		},
		Lasting: []string{"provision"},
	}
}

// end ends operations, and removes their timelines.
func (b fixture) end(minute int, ids ...string) {
	b.Helper()

	for _, id := range ids {
		b.finish(minute, auditlog.Entry{OperationID: id})
	}

	if _, err := b.operations.RemoveTimelines(b.Context(), began.Add(time.Duration(minute+1)*time.Minute), began, 100); err != nil {
		b.Fatal(err)
	}
}

// order accepts operations of an instance, one per minute.
func (b fixture) order(minute int, instance string, kinds ...string) {
	b.Helper()

	for i, kind := range kinds {
		b.accept(minute+i, process.New{Kind: kind, InstanceID: instance, Tenant: "a1"}, auditlog.Entry{By: auditlog.Actor{User: "alice"}})
	}
}

// sweep removes operations at the time at which the retention period ends for operations that were accepted the given number of minutes
// after began. It returns the IDs of the remaining operations.
func (b fixture) sweep(removal operations.Removal, minute int) string {
	b.Helper()

	clock := clocktesting.NewFakeClock(began.Add(day + time.Duration(minute)*time.Minute + time.Second))
	if err := b.entries.OperationRetention(removal, clock, logging.Discard()).Sweep(b.Context()); err != nil {
		b.Fatal(err)
	}

	return b.remaining()
}

func (b fixture) remaining() string {
	b.Helper()

	ids, err := storage.Select[string](b.Context(), b.db.Reader(), `SELECT id FROM operations ORDER BY id`)
	if err != nil {
		b.Fatal(err)
	}

	return strings.Join(ids, " ")
}

func TestOperationsAreRemovedAfterTheirRetentionPeriod(t *testing.T) {
	onEach(t, day, func(b fixture) {
		clock := clocktesting.NewFakeClock(began.Add(30 * time.Minute))
		chainer := b.chainer(clock)

		b.order(1, "gone", "provision", "update", "deprovision")
		b.order(4, "kept", "provision", "update", "update", "update")
		b.order(8, "running", "provision")
		b.end(10, "o01", "o02", "o03", "o04", "o05", "o06", "o07")

		if left := b.sweep(removal(), 20); left != "o01 o02 o03 o04 o05 o06 o07 o08" {
			b.Errorf("operations without a record are removed: %s are left", left)
		}

		b.pass(chainer)
		b.exec(`UPDATE operations SET examine_at = created_at`) // examines all, before their retention period ends, too

		if left := b.sweep(removal(), 2); left != "o03 o04 o05 o06 o07 o08" {
			b.Errorf("want those of two minutes removed, %s are left", left)
		}

		b.exec(`UPDATE operations SET examine_at = keep_until`)

		if left := b.sweep(removal("o05"), 20); left != "o04 o05 o06 o07 o08" {
			b.Errorf("want the rest of the instance that is gone removed, %s are left", left)
		}

		if left := b.sweep(removal(), 20); left != "o04 o05 o06 o07 o08" {
			b.Errorf("operations that stayed are examined again at once: %s are left", left)
		}

		if left := b.sweep(removal(), 20+8*24*60); left != "o04 o07 o08" {
			b.Errorf("want the creation and the newest operation of the instance that exists, and the one that runs, %s are left", left)
		}

		report := b.verify(clock.Now().Add(day), "")
		if !report.Valid || report.Removed != 5 || report.Records != 8 {
			b.Errorf("want a valid chain with 5 removed rows of 8 records, got %+v", report)
		}

		salts, err := storage.Get[int](b.Context(), b.db.Reader(), `SELECT COUNT(*) FROM audit_chain WHERE salt <> ''`)
		if err != nil || salts != 3 {
			b.Errorf("want the salts of the remaining rows, got %d, %v", salts, err)
		}

		// A verification as of the day of the orders finds that the same rows were removed too early.
		report = b.verify(clock.Now(), "")
		if report.Valid || report.ProblemCount != 5 || report.Problems[0].ID != "o01" || report.Problems[0].Problem != chain.Missing {
			b.Errorf("want five missing rows, the first of o01, got %+v", report)
		}
	})
}

// TestOperationsWithoutAnEndAreKept keeps operations that earlier releases have accepted or chained without the end of a retention period.
func TestOperationsWithoutAnEndAreKept(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		chainer := b.chainer(clocktesting.NewFakeClock(began.Add(30 * time.Minute)))

		b.order(1, "gone", "provision")
		b.end(2, "o01")
		b.pass(chainer)

		// A replica of an earlier release has chained the next operation without the end of its retention period.
		b.operations.KeepFor(day)
		b.order(3, "other", "provision")
		b.end(4, "o03")
		b.pass(chainer)
		b.dropTriggers()
		b.exec(`DELETE FROM audit_chain WHERE id = 'o03'`)
		b.exec(`UPDATE audit_chain_head SET number = 1, hash = (SELECT hash FROM audit_chain)`)
		b.exec(`CREATE TABLE kept AS SELECT id, keep_until FROM operations`)
		b.exec(`UPDATE operations SET keep_until = NULL`)
		b.pass(b.chainer(clocktesting.NewFakeClock(began.Add(40 * time.Minute))))
		b.exec(`UPDATE operations SET keep_until = (SELECT keep_until FROM kept WHERE kept.id = operations.id)`)

		if left := b.sweep(removal(), 60); left != "o01 o03" {
			b.Errorf("want both operations, %s are left", left)
		}

		if report := b.verify(began.Add(time.Hour), ""); !report.Valid || report.Records != 2 {
			b.Errorf("want a valid chain of 2 records, got %+v", report)
		}

		b.exec(`DELETE FROM operations WHERE id = 'o03'`)

		if report := b.verify(began.Add(2*day), ""); report.Valid || report.Problems[0].ID != "o03" {
			b.Errorf("want the operation o03 missing, because its record has no end of the retention period, got %+v", report)
		}
	})
}

// TestDatabaseRejectsEarlyRemovals deletes operations as another program would.
func TestDatabaseRejectsEarlyRemovals(t *testing.T) {
	onEach(t, day, func(b fixture) {
		b.order(1, "i1", "provision", "update", "update")
		b.end(5, "o01", "o02")
		b.operations.KeepFor(0)
		b.order(4, "i1", "update")
		b.end(5, "o04")

		b.operations.KeepFor(time.Until(began) + 10000*day) // ends in the future
		b.order(5, "i1", "update")
		b.end(6, "o05")

		for id, allowed := range map[string]bool{
			"o01": true, "o02": true,
			"o03": false, // runs
			"o04": false, // is kept forever
			"o05": false, // is kept for years
		} {
			if _, err := storage.Exec(b.Context(), b.db.Writer(), `DELETE FROM operations WHERE id = ?`, id); (err == nil) != allowed {
				b.Errorf("removal of %s: want allowed %t, got %v", id, allowed, err)
			}

			if _, err := storage.Exec(b.Context(), b.db.Writer(), `UPDATE operations SET keep_until = created_at WHERE id = ?`, id); !allowed && err == nil {
				b.Errorf("the end of the retention period of %s can be changed", id)
			}
		}
	})
}

// TestEntriesKeepTheirOperation checks that an operation stays as long as an erasure needs it to find the account of an entry.
func TestEntriesKeepTheirOperation(t *testing.T) {
	onEach(t, day, func(b fixture) {
		b.order(2, "gone", "provision", "update", "deprovision")
		b.order(6, "early", "provision")
		b.end(9, "o02", "o03", "o04", "o06")
		b.add(1, auditlog.Entry{Action: auditlog.ActionBind, InstanceID: "early"}) // before the first operation
		b.add(10, auditlog.Entry{Action: auditlog.ActionBind, InstanceID: "gone"})
		b.pass(b.chainer(clocktesting.NewFakeClock(began.Add(30 * time.Minute))))

		if left := b.sweep(removal(), 20); left != "o04 o06" {
			b.Errorf("want the operations before the entries removed, %s are left", left)
		}

		for account, want := range map[string]int{"a1": 2, "a2": 0} {
			if count, err := b.entries.CountErasable(b.Context(), account); count != want || err != nil {
				b.Errorf("account %s: want %d entries to erase, got %d, %v", account, want, count, err)
			}
		}

		if _, err := b.entries.Remove(b.Context(), began.Add(2*day), 10); err != nil {
			b.Fatal(err)
		}

		if left := b.sweep(removal(), 8*24*60); left != "" {
			b.Errorf("without the entries, %s are left", left)
		}
	})
}

// TestReplicasShareOperations examines operations while another transaction holds some of them. SQLite has one writer.
func TestReplicasShareOperations(t *testing.T) {
	onEach(t, day, func(b fixture) {
		if b.db.Driver() != storage.DriverPostgres {
			return
		}

		for minute := range 6 {
			b.order(minute+1, fmt.Sprint("gone-", minute), "provision")
		}

		b.end(9, "o01", "o02", "o03", "o04", "o05", "o06")
		b.pass(b.chainer(clocktesting.NewFakeClock(began.Add(30 * time.Minute))))

		now := began.Add(2 * day)

		err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
			if _, err := storage.Select[string](b.Context(), tx, `SELECT id FROM operations WHERE id IN ('o01', 'o04') FOR UPDATE`); err != nil {
				return err
			}

			examined, removed, err := b.entries.RemoveOperations(b.Context(), removal(), now, 10)
			if examined != 4 || removed != 4 {
				b.Errorf("want the four operations that are not locked, got %d, %d", examined, removed)
			}

			return err
		})
		if err != nil {
			b.Fatal(err)
		}

		if left := b.remaining(); left != "o01 o04" {
			b.Errorf("want the locked operations, %s are left", left)
		}

		if _, removed, err := b.entries.RemoveOperations(b.Context(), removal(), now, 1); removed != 1 || err != nil {
			b.Errorf("want one operation removed, as the limit says, got %d, %v", removed, err)
		}
	})
}

func TestOperationsAreArchivedBeforeTheyAreRemoved(t *testing.T) {
	onEach(t, day, func(b fixture) {
		clock, dir := clocktesting.NewFakeClock(began.Add(30*time.Minute)), b.TempDir()
		chainer := b.chainer(clock)
		b.entries.ArchiveTo(auditlog.Archive{Dir: dir, Service: "broker", Chainer: chainer})

		b.order(1, "gone", "provision", "deprovision")
		b.order(3, "young", "provision")
		b.end(4, "o01", "o02", "o03")

		if left := b.sweep(removal(), 2); left != "o01 o02 o03" {
			b.Errorf("a replica that does not add records removes operations: %s are left", left)
		}

		b.pass(chainer)

		// The replica stops after it has archived the operations.
		failing := removal()
		failing.Removed = func(context.Context, storage.Tx, []string, []string) error { return errors.New("stopped") }

		if _, removed, err := b.entries.RemoveOperations(b.Context(), failing, began.Add(day+150*time.Second), 10); removed != 0 || err == nil {
			b.Errorf("want an error, got %d, %v", removed, err)
		}

		names, report := archived(b.T, dir)
		if diff := cmp.Diff([]string{"broker-000000000001.jsonl"}, names); diff != "" || !report.Valid || report.Records != 2 || report.Removed != 0 {
			b.Errorf("want one file with the rows of two operations, got %+v, -want +got\n%s", report, diff)
		}

		if left := b.sweep(removal(), 2); left != "o03" {
			b.Errorf("want the archived operations removed, %s are left", left)
		}

		if names, report := archived(b.T, dir); len(names) != 1 || !report.Valid || report.Removed != 0 {
			b.Errorf("want the same file, got %v, %+v", names, report)
		}

		if live := b.verify(began.Add(2*day), ""); !live.Valid || live.Removed != 2 {
			b.Errorf("want a valid chain with 2 removed rows, got %+v", live)
		}
	})
}

// TestOnlyArchivedOperationsAreRemoved locks the archived operation, so that the sweep finds the next one, which must stay.
func TestOnlyArchivedOperationsAreRemoved(t *testing.T) {
	onEach(t, day, func(b fixture) {
		if b.db.Driver() != storage.DriverPostgres {
			return // there is one writer
		}

		chainer := b.chainer(clocktesting.NewFakeClock(began.Add(30 * time.Minute)))
		b.entries.ArchiveTo(auditlog.Archive{Dir: b.TempDir(), Service: "broker", Chainer: chainer})

		b.order(1, "one", "provision")
		b.order(2, "two", "provision")
		b.end(4, "o01", "o02")
		b.pass(chainer)

		err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
			if _, err := storage.Select[string](b.Context(), tx, `SELECT id FROM operations WHERE id = 'o01' FOR UPDATE`); err != nil {
				return err
			}

			examined, removed, err := b.entries.RemoveOperations(b.Context(), removal(), began.Add(2*day), 1)
			if examined != 1 || removed != 0 {
				b.Errorf("want one examined operation, which stays, got %d and %d removed", examined, removed)
			}

			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	})
}

// TestChangedOperationIsNotRemoved changes an operation in the database. It must stay there as evidence.
func TestChangedOperationIsNotRemoved(t *testing.T) {
	onEach(t, day, func(b fixture) {
		chainer := b.chainer(clocktesting.NewFakeClock(began.Add(30 * time.Minute)))
		b.entries.ArchiveTo(auditlog.Archive{Dir: b.TempDir(), Service: "broker", Chainer: chainer})

		b.order(1, "gone", "provision")
		b.end(2, "o01")
		b.pass(chainer)
		b.dropTriggers()
		b.exec(`UPDATE operations SET ordered_by = 'mallory'`)

		_, removed, err := b.entries.RemoveOperations(b.Context(), removal(), began.Add(2*day), 10)
		if removed != 0 || !errors.Is(err, auditlog.ErrBroken) || !strings.Contains(err.Error(), "o01") {
			b.Errorf("want no removed operation and an error that names it, got %d, %v", removed, err)
		}
	})
}
