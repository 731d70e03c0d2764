package audit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// openEntries returns a new database and its audit log.
func openEntries(t *testing.T) (*storage.DB, *auditlog.Store) {
	t.Helper()

	db := storagetest.SQLite(t)

	if _, err := operations.Open(t.Context(), db, storagetest.Keys(t)); err != nil {
		t.Fatal(err)
	}

	entries, err := auditlog.Open(t.Context(), db, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	return db, entries
}

// TestFloodsHideNoOtherRefusals sends many wrong passwords, and many requests of a user without the role. The refusals of other
// users and of other actions must still be recorded.
func TestFloodsHideNoOtherRefusals(t *testing.T) {
	db, entries := openEntries(t)
	users, err := auth.ParseUsers("noisy:n:viewer,quiet:q:viewer")
	if err != nil {
		t.Fatal(err)
	}

	clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	recorder := audit.NewRecorder(entries, db, clock, logging.Discard())
	handler := httpserver.Wrap(http.NotFoundHandler(), audit.Introduce,
		recorder.Refusals(func(r *http.Request) audit.Target { return audit.Target{Action: r.URL.Path[1:]} }),
		auth.NewAuthorizer(users).Require(auth.RoleOSB))

	send := func(times int, user, password, action string) {
		for range times {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/"+action, http.NoBody)
			request.SetBasicAuth(user, password)
			handler.ServeHTTP(httptest.NewRecorder(), request)
		}
	}

	send(200, "quiet", "wrong", "update")
	send(200, "noisy", "n", "update")
	send(1, "quiet", "q", "update")
	send(1, "noisy", "n", "unbind")

	found, err := entries.List(t.Context(), auditlog.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}

	type refused struct {
		user, action string
		status       int
	}

	got := map[refused]int{}
	for _, entry := range found {
		got[refused{entry.By.User, entry.Action, entry.Status}]++
	}

	want := map[refused]int{
		{"", "update", 401}: 100, {"noisy", "update", 403}: 100, {"quiet", "update", 403}: 1, {"noisy", "unbind", 403}: 1,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(refused{})); diff != "" {
		t.Errorf("entries: -want +got\n%s", diff)
	}
}

// flaky is a store that rejects entries while failing is set, as during an outage of the database.
type flaky struct {
	audit.Store

	failing bool
}

func (f *flaky) Insert(ctx context.Context, tx storage.Tx, entry auditlog.Entry) error {
	if f.failing {
		return errors.New("the database is down")
	}

	return f.Store.Insert(ctx, tx, entry)
}

// TestEntriesCountRefusalsOfAnOutage checks that the first entry after an outage of the database counts all rejected requests that have no
// entry: those that could not be recorded, and those that were not sampled.
func TestEntriesCountRefusalsOfAnOutage(t *testing.T) {
	db, entries := openEntries(t)
	clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	store := &flaky{Store: entries, failing: true}
	recorder := audit.NewRecorder(store, db, clock, logging.Discard())

	for range 150 {
		recorder.Refused(t.Context(), auditlog.Entry{Action: "update", Status: http.StatusConflict})
	}

	store.failing = false

	clock.SetTime(clock.Now().Add(time.Minute))
	recorder.Refused(t.Context(), auditlog.Entry{Action: "update", Status: http.StatusConflict})

	found, err := entries.List(t.Context(), auditlog.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}

	if len(found) != 1 || found[0].Missed != 150 {
		t.Errorf("want one entry that counts 150 requests, got %+v", found)
	}
}
