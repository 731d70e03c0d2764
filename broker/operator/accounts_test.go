package operator_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// account returns the data of an account.
func (b *bench) account(id string) operatorapi.Account {
	b.Helper()

	return read[operatorapi.Account](b, b.want("an account", b.do("admin", "GET", "/accounts/"+id), http.StatusOK))
}

// erase erases one batch of the account's data.
func (b *bench) erase(id string) operatorapi.Erasure {
	b.Helper()

	return read[operatorapi.Erasure](b, b.want("an erasure", b.do("admin", "POST", "/accounts/"+id+"/erase"), http.StatusOK))
}

// wantConflict fails the test unless the erasure is rejected with the given description.
func (b *bench) wantConflict(id, description string) {
	b.Helper()

	got := read[operatorapi.Error](b, b.want("a conflict", b.do("admin", "POST", "/accounts/"+id+"/erase"), http.StatusConflict))
	if got.Description != description {
		b.Errorf("want %q, got %q", description, got.Description)
	}
}

func TestEraseAccount(t *testing.T) {
	onEach(t, func(b *bench) {
		failed := b.instance("one", process.Failed)
		b.instance("moved", process.Succeeded, func(i *environment.Instance) { i.GlobalAccountID = "other" })

		if _, err := storage.Exec(b.Context(), b.db.Writer(), `UPDATE instances SET subscription_account_id = 'ga' WHERE id = 'moved'`); err != nil {
			b.Fatal(err)
		}

		b.want("a rejected retry", b.intervene("retry", "unknown", onlyReason), http.StatusNotFound)
		retry := b.answered("a retry", b.intervene("retry", failed, onlyReason)).ID

		b.wantConflict("ga", "The account still has instances: name-moved (moved), name-one (one). Delete them first.")
		b.drop("moved")
		b.wantConflict("ga", "The account still has instances: name-one (one). Delete them first.")
		b.drop("one")
		b.wantConflict("ga", "The account still has unfinished operations: provision "+retry+" of instance one. Wait until they have ended, or cancel them.")

		stored := b.account("ga")
		want := operatorapi.Account{
			AccountID: "ga", Operations: 1, TimelineEntries: 1, AuditEntries: 1, Events: 5, Instances: []operatorapi.AccountInstance{},
			UnfinishedOperations: []operatorapi.AccountOperation{{ID: retry, Kind: "provision", InstanceID: "one", State: "pending"}},
		}

		if diff := cmp.Diff(want, stored); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}

		b.intervene("cancel", retry, onlyReason)
		b.clock.SetTime(b.clock.Now().Add(time.Minute))

		erased := b.erase("ga")
		// The audit entries record the retry and the cancellation. The timeline entries are the retry of the failed
		// operation, and the start and the cancellation of its successor. The events are the creation and the deletion of the instance, and
		// the starts and ends of both operations.
		want2 := operatorapi.Erasure{AccountID: "ga", EntryID: erased.EntryID, Operations: 2, TimelineEntries: 3, AuditEntries: 2, Events: 6, Complete: true}
		if diff := cmp.Diff(want2, erased); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}

		entry := read[operatorapi.AuditEntry](b, b.want("the entry", b.do("admin", "GET", "/audit/"+erased.EntryID), http.StatusOK))
		wantEntry := operatorapi.AuditEntry{
			ID: erased.EntryID, At: b.clock.Now(), Action: "erase", AccountID: "ga", Status: http.StatusOK,
			By:    operatorapi.Actor{User: "admin", Means: "password", Address: "127.0.0.1", RequestID: identity},
			After: map[string]any{"operations": 2., "timelineEntries": 3., "auditEntries": 2., "runtimes": 0., "outsideObjects": 0., "events": 6.},
		}

		if diff := cmp.Diff(wantEntry, entry); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}

		for _, entry := range b.audit("?instance_id=one") {
			if entry.ErasedBy != erased.EntryID || entry.By != (operatorapi.Actor{}) || entry.Reason != "" {
				b.Errorf("the entry has not been erased: %+v", entry)
			}
		}

		shown := read[operatorapi.Operation](b, b.want("the operation", b.do("viewer", "GET", "/operations/"+failed), http.StatusOK))
		if shown.Description != "Erased" || shown.State != "failed" || len(shown.Timeline) != 0 {
			b.Errorf("want an operation without timeline, got %+v", shown)
		}

		if again := b.erase("ga"); again != (operatorapi.Erasure{AccountID: "ga", Complete: true}) {
			b.Errorf("a repeated erasure has nothing to do, got %+v", again)
		}

		// The erasure keeps the entries of the earlier, rejected erasures.
		if entries := b.audit("?action=erase"); len(entries) != 4 {
			b.Errorf("want three rejected erasures and one accepted, got %+v", entries)
		}

		b.want("an unknown account", b.do("admin", "POST", "/accounts/none/erase"), http.StatusNotFound)

		if other := b.account("other"); other.Operations != 1 {
			b.Errorf("the other account must keep its operation, got %+v", other)
		}
	})
}

func TestEraseAccountInBatches(t *testing.T) {
	onEach(t, func(b *bench) {
		const operations = 101

		b.instance("one", process.Succeeded)

		for range operations - 1 {
			b.operation("one", environment.KindUpdate, process.Succeeded)
		}

		b.drop("one")

		first := b.erase("ga")
		if first.Complete || first.Operations != 100 {
			b.Errorf("want a batch of 100 operations, got %+v", first)
		}

		second := b.erase("ga")
		if !second.Complete || second.Operations != 1 || second.EntryID == first.EntryID {
			b.Errorf("want the last operation under another entry, got %+v", second)
		}
	})
}

func TestManyReasonsAgainstAnErasure(t *testing.T) {
	b := newBench(t)

	for number := range 22 {
		b.instance(fmt.Sprintf("i%02d", number), process.Succeeded)
	}

	got := read[operatorapi.Error](b, b.want("a conflict", b.do("admin", "POST", "/accounts/ga/erase"), http.StatusConflict)).Description
	if !strings.HasSuffix(got, "name-i19 (i19) and more. Delete them first.") {
		b.Errorf("want 20 instances, got %q", got)
	}

	if listed := len(b.account("ga").Instances); listed != 21 {
		b.Errorf("want 21 instances, got %d", listed)
	}
}

// TestConcurrentErasures erases an account with several requests at a time, as two operators may do on different replicas.
// Each operation must be erased and counted once.
func TestConcurrentErasures(t *testing.T) {
	onEach(t, func(b *bench) {
		const operations, clients = 230, 4

		b.instance("one", process.Succeeded)

		for range operations - 1 {
			b.operation("one", environment.KindUpdate, process.Succeeded)
		}

		b.drop("one")

		var (
			running sync.WaitGroup
			erased  atomic.Int64
		)

		for range clients {
			running.Go(func() {
				for complete := false; !complete; {
					got := b.do("admin", "POST", "/accounts/ga/erase")
					if got.Status != http.StatusOK {
						b.Errorf("want 200, got %d %s", got.Status, got.Raw)

						return
					}

					batch := read[operatorapi.Erasure](b, got)
					erased.Add(int64(batch.Operations))
					complete = batch.Complete
				}
			})
		}

		running.Wait()

		if erased.Load() != operations {
			b.Errorf("want each of the %d operations erased once, got %d", operations, erased.Load())
		}

		recorded := 0.

		for _, entry := range b.audit("?action=erase") {
			count, _ := entry.After["operations"].(float64)
			recorded += count
		}

		if recorded != operations {
			b.Errorf("the entries record %v operations, want %d", recorded, operations)
		}
	})
}
