package accountpool_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// overview returns the overview without the versions of the accounts, by name.
func (f *fixture) overview() map[string]accountpool.Status {
	f.Helper()

	all, err := f.pool.Overview(f.Context())
	if err != nil {
		f.Fatal(err)
	}

	byName := map[string]accountpool.Status{}

	for _, status := range all {
		status.Version = ""
		byName[status.Name] = status
	}

	return byName
}

func TestOverview(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a-claimed", "aws")
		f.assign("i1", "t1")
		f.assign("i2", "t1")
		f.addShoot("c-i1", "a-claimed")
		f.add("b-free", "aws")
		f.add("c-dirty", "aws", gardenclient.LabelDirty)
		f.label("c-dirty", gardenclient.LabelTenant, "t2")
		f.add("d-internal", "aws", gardenclient.LabelInternal)
		f.add("e-labeled", "aws")
		f.label("e-labeled", gardenclient.LabelTenant, "t3")
		f.add("f-shared", "gcp", gardenclient.LabelShared)
		f.assign("i3", "t1", shared, func(r *accountpool.Request) { r.Type = "gcp" })

		want := map[string]accountpool.Status{
			"a-claimed": {
				Account: accountpool.Account{Name: "a-claimed", Type: "aws", Tenant: "t1"}, State: accountpool.Claimed,
				Instances: []string{"i1", "i2"}, Shoots: []string{"c-i1"},
			},
			"b-free":     {Account: accountpool.Account{Name: "b-free", Type: "aws"}, State: accountpool.Free},
			"c-dirty":    {Account: accountpool.Account{Name: "c-dirty", Type: "aws", Tenant: "t2", Dirty: true}, State: accountpool.Dirty},
			"d-internal": {Account: accountpool.Account{Name: "d-internal", Type: "aws", Internal: true}, State: accountpool.Internal},
			"e-labeled":  {Account: accountpool.Account{Name: "e-labeled", Type: "aws", Tenant: "t3"}, State: accountpool.Labeled},
			"f-shared": {
				Account: accountpool.Account{Name: "f-shared", Type: "gcp", Shared: true}, State: accountpool.SharedState, Instances: []string{"i3"},
			},
		}
		if diff := cmp.Diff(want, f.overview()); diff != "" {
			f.Errorf("-want +got:\n%s", diff)
		}

		for name, status := range f.overview() {
			if status.Explain() == "" {
				f.Errorf("%s has no explanation", name)
			}
		}
	})
}

func TestEveryStateIsExplained(t *testing.T) {
	for _, state := range accountpool.States() {
		if (accountpool.Status{State: state}).Explain() == "" {
			t.Errorf("%s has no explanation", state)
		}
	}
}

// TestFree checks that only dirty accounts that nobody uses become free.
func TestFree(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a", "aws")
		f.assign("i1", "t1")

		allow := func(accountpool.Status) error { return nil }
		want := func(reason, name string, kind failure.Kind) {
			t.Helper()

			if _, err := f.pool.Free(f.Context(), name, allow); !failure.Is(err, kind) {
				f.Errorf("%s: got %v", reason, err)
			}
		}

		want("an unknown account", "none", failure.NotFound)
		want("the tenant uses it", "a", failure.Conflict)
		f.release("i1")
		f.addShoot("c-foreign", "a")
		want("a Shoot still uses it", "a", failure.Conflict)

		if text := f.overview()["a"].Explain(); !strings.Contains(text, "c-foreign") {
			f.Errorf("the explanation is %q", text)
		}

		f.removeShoot("c-foreign")

		denied := errors.New("not recorded")
		if _, err := f.pool.Free(f.Context(), "a", func(accountpool.Status) error { return denied }); !errors.Is(err, denied) {
			f.Errorf("without permission, got %v", err)
		}

		f.wantLabels("nothing has changed", "a", "tenantName=t1", "dirty=true")

		before, err := f.pool.Free(f.Context(), "a", allow)
		if err != nil || before.Tenant != "t1" || before.State != accountpool.Dirty {
			f.Errorf("got %+v, %v", before, err)
		}

		f.wantLabels("the account is free", "a")

		if got := f.assign("i2", "t2"); got != "a" {
			f.Errorf("another tenant gets %q", got)
		}
	})
}
