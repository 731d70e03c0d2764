package audit_test

import (
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
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestFloodsHideNoOtherRefusals sends many wrong passwords, and many requests of a user without the role. The refusals of other
// users and of other actions must still be recorded.
func TestFloodsHideNoOtherRefusals(t *testing.T) {
	db := storagetest.SQLite(t)

	if _, err := operations.Open(t.Context(), db, storagetest.Keys(t)); err != nil {
		t.Fatal(err)
	}

	entries, err := auditlog.Open(t.Context(), db, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

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
