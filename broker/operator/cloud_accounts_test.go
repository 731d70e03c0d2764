package operator_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorapitest"
)

// fakeAccountPool has one dirty account.
type fakeAccountPool struct {
	status accountpool.Status
	freed  []string
	err    error
	// cleaned contains the accounts for which the hook was called, with the reasons.
	cleaned []string
}

func (f *fakeAccountPool) cleanup() accountpool.Cleanup {
	return accountpool.Cleanup{
		Account: "a", DirtySince: time.Unix(1, 0).UTC(), Attempts: 2, State: accountpool.CleanupPending, Message: "emptying", NextAt: time.Unix(2, 0).UTC(),
	}
}

func (f *fakeAccountPool) Cleanups(context.Context) (map[string]accountpool.Cleanup, error) {
	return map[string]accountpool.Cleanup{"a": f.cleanup()}, f.err
}

func (f *fakeAccountPool) Clean(_ context.Context, name, reason string) (accountpool.Cleanup, error) {
	if f.err == nil {
		f.cleaned = append(f.cleaned, name+": "+reason)
	}

	return f.cleanup(), f.err
}

func (f *fakeAccountPool) Overview(context.Context) ([]accountpool.Status, error) {
	return []accountpool.Status{f.status}, f.err
}

func (f *fakeAccountPool) Free(_ context.Context, name string, allow func(accountpool.Status) error) (accountpool.Status, error) {
	err := f.err
	if err == nil {
		err = allow(f.status)
	}

	if err == nil {
		f.freed = append(f.freed, name)
	}

	return f.status, err
}

func TestCloudAccounts(t *testing.T) {
	pool := &fakeAccountPool{status: accountpool.Status{
		Account: accountpool.Account{Name: "a", Type: "aws_eu-central-1", Tenant: "t1", Dirty: true, EUAccess: true}, State: accountpool.Dirty,
	}}
	b := newBench(t, func(options *operator.Options) { options.Pool = pool })
	release := func(body string) reply {
		return b.send("operator", "POST", "/cloudaccounts/a/release", strings.NewReader(body))
	}

	want := operatorapi.CloudAccount{
		Name: "a", Type: "aws_eu-central-1", State: "dirty", Tenant: "t1", EUAccess: true,
		Meaning: "The tenant has released the account. Empty it at the provider, then release it: ebctl accounts release a --reason REASON",
	}

	cleanup := operatorapi.CloudAccountCleanup{
		Account: "a", DirtySince: time.Unix(1, 0).UTC(), Attempts: 2, State: "pending", Message: "emptying", NextAttemptAt: time.Unix(2, 0).UTC(),
	}
	listed := want
	listed.Cleanup = cleanup

	list := read[operatorapi.CloudAccountList](b, b.want("viewers may read", b.do("viewer", "GET", "/cloudaccounts"), http.StatusOK))
	if diff := cmp.Diff([]operatorapi.CloudAccount{listed}, list.Data); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	b.want("a reason is required", release(`{}`), http.StatusBadRequest)
	b.want("unknown fields are rejected", release(`{"raeson": "x"}`), http.StatusBadRequest)

	got := read[operatorapi.CloudAccount](b, b.want("a release", release(`{"reason": "emptied, ticket 4711"}`), http.StatusOK))
	if diff := cmp.Diff(want, got); diff != "" || !cmp.Equal(pool.freed, []string{"a"}) {
		t.Errorf("freed %v, -want +got:\n%s", pool.freed, diff)
	}

	entries := slices.DeleteFunc(b.audit("?action=release"), func(entry operatorapi.AuditEntry) bool { return entry.Status != http.StatusOK })
	if len(entries) != 1 || entries[0].Reason != "emptied, ticket 4711" || entries[0].Before["account"] != "a" || entries[0].AccountID != "t1" {
		t.Errorf("the audit log has %+v", entries)
	}

	clean := func(body string) reply {
		return b.send("operator", "POST", "/cloudaccounts/a/cleanup", strings.NewReader(body))
	}

	b.want("a cleanup requires a reason", clean(`{}`), http.StatusBadRequest)

	answered := read[operatorapi.CloudAccountCleanup](b, b.want("a cleanup", clean(`{"reason": "ticket 4711"}`), http.StatusOK))
	if diff := cmp.Diff(cleanup, answered); diff != "" || !cmp.Equal(pool.cleaned, []string{"a: ticket 4711"}) {
		t.Errorf("cleaned %v, -want +got:\n%s", pool.cleaned, diff)
	}

	for kind, status := range map[failure.Kind]int{failure.NotFound: http.StatusNotFound, failure.Conflict: http.StatusConflict} {
		pool.err = failure.New(kind, "no")
		b.want("a rejection", release(`{"reason": "x"}`), status)
		b.want("a rejected cleanup", clean(`{"reason": "x"}`), status)
	}

	if len(pool.freed) != 1 {
		t.Errorf("rejected releases freed %v", pool.freed)
	}

	without := newBench(t)
	without.want("no pool", without.do("viewer", "GET", "/cloudaccounts"), http.StatusConflict)
	without.want("no pool", without.send("operator", "POST", "/cloudaccounts/a/release", strings.NewReader(`{"reason": "x"}`)), http.StatusConflict)
	without.want("no pool", without.send("operator", "POST", "/cloudaccounts/a/cleanup", strings.NewReader(`{"reason": "x"}`)), http.StatusConflict)
}

func TestEveryStateOfAccountsIsDescribed(t *testing.T) {
	var states []string
	for _, state := range accountpool.States() {
		states = append(states, string(state))
	}

	slices.Sort(states)

	if diff := cmp.Diff(operatorapitest.Enum(t, "CloudAccountState"), states); diff != "" {
		t.Errorf("-described +computed:\n%s", diff)
	}
}
