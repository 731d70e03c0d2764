package poolcleanup_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/jobs/jobstest"
	"github.com/environment-broker/environment-broker/broker/poolcleanup"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/clients/cleanuphook"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecleanup"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/accounts"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// garden is a garden with accounts. Its methods are those that cleanups call; package accountpool tests the labels on a fake garden.
type garden struct {
	accountpool.Garden

	accounts map[string]accountpool.Account
	shoots   map[string][]string
	// broken is the error that label changes return, or nil.
	broken error
}

func (g *garden) Accounts(context.Context, string) ([]accountpool.Account, error) {
	var all []accountpool.Account
	for _, account := range g.accounts {
		all = append(all, account)
	}

	return all, nil
}

func (g *garden) Shoots(context.Context) (map[string][]string, error) { return g.shoots, nil }

func (g *garden) SetLabels(_ context.Context, account accountpool.Account) error {
	if g.broken != nil {
		return g.broken
	}

	if g.accounts[account.Name].Version != account.Version {
		return failure.New(failure.Conflict, "changed")
	}

	account.Version += "+"
	g.accounts[account.Name] = account

	return nil
}

// fixture is a cleaner with a simulated hook. Account a is dirty, b is dirty and in use, and c is free.
type fixture struct {
	*testing.T

	poolcleanup.Cleaner

	db        *storage.DB
	garden    *garden
	simulated *fakecleanup.Hook
	settings  cleanuphook.Config
	clock     *clocktesting.FakeClock
	entries   *auditlog.Store
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	f := &fixture{T: t, db: db, simulated: fakecleanup.New(), clock: clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))}
	f.garden = &garden{shoots: map[string][]string{"b": {"c-1"}}, accounts: map[string]accountpool.Account{
		"a": {Name: "a", Type: "aws", Tenant: "t1", Dirty: true, Version: "1"},
		"b": {Name: "b", Type: "aws", Tenant: "t2", Dirty: true, Version: "1"},
		"c": {Name: "c", Type: "aws", Version: "1"},
	}}

	claims, err := accounts.Open(t.Context(), db, f.clock)
	if err != nil {
		t.Fatal(err)
	}

	if f.entries, err = auditlog.Open(t.Context(), db, time.Hour); err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(f.simulated)
	t.Cleanup(server.Close)

	f.settings = fakecleanup.Config(server.URL)

	f.Cleaner = poolcleanup.Cleaner{
		Pool: accountpool.Pool{Garden: f.garden, Claims: claims}, Records: claims,
		Hook:     cleanuphook.New(f.settings, "garden-local", http.DefaultTransport),
		Recorder: audit.NewRecorder(f.entries, db, f.clock, logging.Discard()),
		Metrics:  poolcleanup.NewMetrics(claims, f.clock, logging.Discard()),
		Clock:    f.clock, Log: logging.Discard(),
	}

	return f
}

// pass runs the job once and returns the record of account a.
func (f *fixture) pass() accountpool.Cleanup {
	f.Helper()

	if err := jobstest.Run(f.Context(), f.Job(0)); err != nil {
		f.Error(err)
	}

	return f.record()
}

func (f *fixture) record() accountpool.Cleanup {
	f.Helper()

	records, err := f.Cleanups(f.Context())
	if err != nil {
		f.Fatal(err)
	}

	return records["a"]
}

// wantReleases checks the number of releases in the audit log, and that account a is free after a release and dirty before it.
func (f *fixture) wantReleases(reason string, want int) {
	f.Helper()

	count, err := storage.Get[int](f.Context(), f.db.Reader(), `SELECT count(*) FROM audit WHERE action = 'release'`)
	if err != nil || count != want {
		f.Errorf("%s: the audit log has %d releases, %v", reason, count, err)
	}

	if account := f.garden.accounts["a"]; account.Dirty != (want == 0) || (account.Tenant == "") != (want > 0) {
		f.Errorf("%s: the account is %+v", reason, account)
	}
}

func TestConfirmedAccountsBecomeFree(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		began := f.clock.Now()

		want := accountpool.Cleanup{
			Account: "a", Type: "aws", DirtySince: began, Attempts: 1, State: accountpool.CleanupPending,
			Message: "the account is being emptied", NextAt: began.Add(5 * time.Minute),
		}
		if diff := cmp.Diff(want, f.pass()); diff != "" {
			f.Errorf("-want +got\n%s", diff)
		}

		f.wantReleases("not yet", 0)

		f.clock.Step(5*time.Minute - time.Second)
		f.pass()

		if asked := f.simulated.Operations(); len(asked) != 1 {
			f.Errorf("asked %d times: the pause has not ended, and account b is in use", len(asked))
		}

		f.clock.Step(time.Second)
		f.pass()
		f.wantReleases("confirmed", 1)
		f.pass()

		if record := f.record(); record != (accountpool.Cleanup{}) {
			f.Errorf("the record of a free account remains: %+v", record)
		}

		if account := f.garden.accounts["b"]; !account.Dirty {
			f.Error("an account in use must stay dirty")
		}

		expected := `# HELP environment_broker_pool_cleanups_total Calls from this replica to the cleanup hook for dirty accounts, by result: clean (the account is free), pending, failed, unanswered.
# TYPE environment_broker_pool_cleanups_total counter
environment_broker_pool_cleanups_total{result="clean"} 1
environment_broker_pool_cleanups_total{result="failed"} 0
environment_broker_pool_cleanups_total{result="pending"} 1
environment_broker_pool_cleanups_total{result="unanswered"} 0
# HELP environment_broker_pool_dirty_oldest_seconds Time for which the oldest dirty account of the account pool has been dirty, by type (hyperscalerType). All replicas report the same value.
# TYPE environment_broker_pool_dirty_oldest_seconds gauge
environment_broker_pool_dirty_oldest_seconds{type="aws"} 300
`

		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(f.Metrics)

		if err := testutil.GatherAndCompare(registry, strings.NewReader(expected)); err != nil {
			f.Error(err)
		}
	})
}

// TestAnswers checks the record of a response of the hook, and the pause before the next call.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		fault simulator.Fault
		state accountpool.CleanupState
		text  string
	}{
		"Pending": {simulator.Fault{}, accountpool.CleanupPending, "the account is being emptied"},
		"Failed":  {simulator.Fault{Body: `{"state": "failed", "message": "a bucket is locked"}`}, accountpool.CleanupFailed, "a bucket is locked"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			if got := f.answer(c.fault, false); got.State != c.state || got.Message != c.text || got.NextAt.Sub(f.clock.Now()) != 5*time.Minute {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestErrorsOfDeletionsKeepTheAccountDirty checks that an account keeps its tenant, and is not given to another one, if its volumes could
// not be deleted or the hook has not confirmed that it is empty.
func TestErrorsOfDeletionsKeepTheAccountDirty(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))

	f.simulated.Inject(
		simulator.Fault{Body: `{"state": "failed", "message": "2 of 3 volumes could not be deleted"}`},
		simulator.Fault{Status: http.StatusInternalServerError, Body: `{"state": "clean"}`},
		simulator.Fault{Body: `{}`},
	)

	for _, reason := range []string{"volumes remain", "a confirmation with an error", "no confirmation"} {
		_ = jobstest.Run(f.Context(), f.Job(0)) // fails if the hook has not answered
		f.wantReleases(reason, 0)

		if account := f.garden.accounts["a"]; account.Tenant != "t1" {
			t.Errorf("%s: the account has the tenant %q", reason, account.Tenant)
		}

		f.clock.Step(24 * time.Hour)
	}

	for range 2 { // the volumes are deleted, then the hook confirms it
		f.pass()
		f.clock.Step(24 * time.Hour)
	}

	f.wantReleases("confirmed", 1)
}

// TestFaults lets the hook fail.
//
//faults:table account-pool.md#cleanup-hook
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault simulator.Fault
		pause time.Duration
	}{
		"is unreachable, or its response is lost/unreachable": {simulator.Fault{Unsent: true}, 5 * time.Minute},
		"is unreachable, or its response is lost/lost":        {simulator.Fault{Lost: true}, 5 * time.Minute},
		"is slow":                         {simulator.Fault{Delay: time.Minute}, 5 * time.Minute},
		"returns no JSON":                 {simulator.Fault{Body: "<html>clean</html>"}, 5 * time.Minute},
		"returns an unknown state":        {simulator.Fault{Body: `{"state": "cleanish"}`}, 5 * time.Minute},
		"401, 403/401":                    {simulator.Fault{Status: 401}, 5 * time.Minute},
		"401, 403/403":                    {simulator.Fault{Status: 403}, 5 * time.Minute},
		"429, 503 with Retry-After/429":   {simulator.Fault{Status: 429, RetryAfter: 120}, 2 * time.Minute},
		"429, 503 with Retry-After/503":   {simulator.Fault{Status: 503, RetryAfter: 3600}, 5 * time.Minute},
		"408, 500 and above/408":          {simulator.Fault{Status: 408}, 5 * time.Minute},
		"408, 500 and above/500":          {simulator.Fault{Status: 500}, 5 * time.Minute},
		"400, 409 and other statuses/400": {simulator.Fault{Status: 400}, 5 * time.Minute},
		"400, 409 and other statuses/409": {simulator.Fault{Status: 409}, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))

			got := f.answer(c.fault, true)
			faulttable.Shows(t, "account-pool.md#cleanup-hook", name, got.Message)

			if got.State != accountpool.CleanupUnanswered || got.NextAt.Sub(f.clock.Now()) != c.pause {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// answer calls the hook once, with the fault, and returns the record of the response. The account stays dirty.
func (f *fixture) answer(fault simulator.Fault, fails bool) accountpool.Cleanup {
	f.Helper()

	if fault != (simulator.Fault{}) {
		f.simulated.Inject(fault)
	}

	if fault.Delay > 0 {
		f.settings.Timeout = 100 * time.Millisecond
		f.Hook = cleanuphook.New(f.settings, "garden-local", http.DefaultTransport)
	}

	if err := jobstest.Run(f.Context(), f.Job(0)); (err != nil) != fails {
		f.Errorf("the job returned %v", err)
	}

	f.wantReleases("a fault", 0)

	return f.record()
}

func TestPausesGrow(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.simulated.Inject(simulator.Fault{Body: `{"state": "failed"}`, Times: -1})

	var pauses []time.Duration

	for range 6 {
		record := f.pass()
		pauses = append(pauses, record.NextAt.Sub(f.clock.Now()))
		f.clock.SetTime(record.NextAt)
	}

	want := []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour}
	if !slices.Equal(want, pauses) {
		t.Errorf("the pauses are %v", pauses)
	}
}

// hookFunc is a hook that changes the garden during its call.
type hookFunc func()

func (h hookFunc) Clean(context.Context, accountpool.Account) (accountpool.CleanupState, string, error) {
	h()

	return accountpool.CleanupClean, "empty", nil
}

// TestChangesDuringTheConfirmation checks that a confirmation holds only for an unchanged account that nothing uses.
func TestChangesDuringTheConfirmation(t *testing.T) {
	cases := map[string]struct {
		change func(*fixture)
		text   string
	}{
		"Labels": {func(f *fixture) {
			account := f.garden.accounts["a"]
			account.Version = "2"
			f.garden.accounts["a"] = account
		}, "has changed since it was confirmed"},
		"Shoot": {func(f *fixture) { f.garden.shoots["a"] = []string{"c-2"} }, "Shoots still use the account"},
		"Race":  {func(f *fixture) { f.garden.broken = failure.New(failure.Conflict, "changed in the meantime") }, "changed in the meantime"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			f.Hook = hookFunc(func() { c.change(f) })

			if err := jobstest.Run(f.Context(), f.Job(0)); !failure.Is(err, failure.Conflict) {
				t.Errorf("got %v", err)
			}

			if got := f.record(); got.State != accountpool.CleanupPending || !strings.Contains(got.Message, c.text) || !f.garden.accounts["a"].Dirty {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestRequestsOfOperators(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))

	for name, want := range map[string]failure.Kind{"none": failure.NotFound, "c": failure.NotFound, "b": failure.Conflict} {
		if _, err := f.Clean(f.Context(), name, "ticket 4711"); !failure.Is(err, want) {
			t.Errorf("account %s: %v", name, err)
		}
	}

	first, err := f.Clean(f.Context(), "a", "ticket 4711")
	if err != nil || first.State != accountpool.CleanupPending || first.Attempts != 1 {
		t.Errorf("got %+v, %v", first, err)
	}

	if record := f.record(); record != first {
		t.Errorf("recorded %+v", record)
	}

	f.pass()
	f.wantReleases("the pause begins with the request", 0)
	f.clock.Step(5 * time.Minute)
	f.pass()
	f.wantReleases("the second question comes from the pass", 1)

	f.Hook = nil
	if _, err := f.Clean(f.Context(), "b", "ticket 4711"); !failure.Is(err, failure.Conflict) {
		t.Errorf("without a hook: %v", err)
	}
}

// TestWithoutAHook checks that a cleaner without a hook records dirty accounts for the metric, and frees none.
func TestWithoutAHook(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.Hook = nil

	if record := f.pass(); record.DirtySince != f.clock.Now() || record.Attempts != 0 {
		t.Errorf("got %+v", record)
	}
}
