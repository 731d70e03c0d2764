package orders_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var wholePage = orders.Page{Size: 100, Total: true}

// shoots returns the names of the listed runtimes' Shoots in alphabetical order.
func (f *fixture) shoots(filter orders.RuntimeFilter) []string {
	f.Helper()

	list, err := f.service.ListRuntimes(f.Context(), filter, wholePage)
	if err != nil {
		f.Fatal(err)
	}

	names := []string{}
	for _, one := range list.Runtimes {
		names = append(names, one.ShootName)
	}

	if list.Total != len(names) || list.Next != "" {
		f.Errorf("the total is %d and the next page %q, want %d on one page", list.Total, list.Next, len(names))
	}

	slices.Sort(names)

	return names
}

// listed returns the listed operations as kind, Shoot and state, in alphabetical order.
func (f *fixture) listed(filter orders.OperationFilter) []string {
	f.Helper()

	list, err := f.service.ListOperations(f.Context(), filter, wholePage)
	if err != nil {
		f.Fatal(err)
	}

	lines := []string{}
	for _, one := range list.Operations {
		lines = append(lines, strings.Join([]string{one.Kind, one.ShootName, string(one.State)}, " "))
	}

	if list.Total != len(lines) {
		f.Errorf("the total is %d, want %d", list.Total, len(lines))
	}

	slices.Sort(lines)

	return lines
}

func TestLists(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		creation, _ := f.provision("tenant", "", "c-first")
		f.finish(creation, process.Succeeded)

		_, second := f.provision("tenant", "", "c-second")
		f.provision("other", "", "c-third")
		f.deprovision("tenant", "", second) // cancels the pending creation

		for name, c := range map[string]struct {
			reason string
			filter orders.RuntimeFilter
			want   []string
		}{
			"tenant":      {"a tenant sees only its own runtimes", orders.RuntimeFilter{Tenant: "tenant"}, []string{"c-first", "c-second"}},
			"all tenants": {"an operator sees all", orders.RuntimeFilter{}, []string{"c-first", "c-second", "c-third"}},
			"state":       {"the public state", orders.RuntimeFilter{State: process.Pending}, []string{"c-second", "c-third"}},
			"kind":        {"of the newest operation", orders.RuntimeFilter{Kind: operation.KindDeprovisionNoInstall}, []string{"c-second"}},
			"Shoot":       {"of another tenant", orders.RuntimeFilter{Tenant: "tenant", ShootName: "c-third"}, []string{}},
		} {
			if diff := cmp.Diff(c.want, f.shoots(c.filter)); diff != "" {
				f.Errorf("runtimes, %s: %s: -want +got\n%s", name, c.reason, diff)
			}
		}

		const (
			created  = "ProvisionNoInstall c-first succeeded"
			canceled = "ProvisionNoInstall c-second failed"
			deletion = "DeprovisionNoInstall c-second pending"
			others   = "ProvisionNoInstall c-third pending"
		)

		for name, c := range map[string]struct {
			reason string
			filter orders.OperationFilter
			want   []string
		}{
			"tenant":      {"a tenant sees only its own operations", orders.OperationFilter{Tenant: "tenant"}, []string{deletion, created, canceled}},
			"all tenants": {"an operator sees all", orders.OperationFilter{}, []string{deletion, created, canceled, others}},
			"state":       {"canceled operations are shown as failed", orders.OperationFilter{State: process.Failed}, []string{canceled}},
			"kind":        {"of one kind", orders.OperationFilter{Kind: operation.KindDeprovisionNoInstall}, []string{deletion}},
			"runtime":     {"of one runtime", orders.OperationFilter{RuntimeID: second}, []string{deletion, canceled}},
			"stranger":    {"of another tenant's runtime", orders.OperationFilter{Tenant: "other", RuntimeID: second}, []string{}},
			"unfinished":  {"that have not ended", orders.OperationFilter{Tenant: "tenant", Unfinished: true}, []string{deletion}},
			"none":        {"a final state excludes unfinished operations", orders.OperationFilter{Unfinished: true, State: process.Failed}, []string{}},
			"since":       {"from the future", orders.OperationFilter{Since: time.Now().Add(time.Hour)}, []string{}},
			"until":       {"before the future", orders.OperationFilter{Until: time.Now().Add(time.Hour), Tenant: "other"}, []string{others}},
		} {
			if diff := cmp.Diff(c.want, f.listed(c.filter)); diff != "" {
				f.Errorf("operations, %s: %s: -want +got\n%s", name, c.reason, diff)
			}
		}
	})
}

func TestStuckOperations(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	delayed, _ := f.provision("tenant", "", "c-delayed")
	f.provision("tenant", "", "c-pending")
	f.setState(delayed, process.InProgress, process.Problem{Message: "no quota"})

	if diff := cmp.Diff([]string{"ProvisionNoInstall c-delayed in progress"}, f.listed(orders.OperationFilter{Stuck: true})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestPublicKindsOfLists lists operations whose kinds have different names in the API and in the database.
func TestPublicKindsOfLists(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	creation, runtimeID := f.provision("tenant", "", "c-first")
	f.finish(creation, process.Succeeded)

	if _, err := f.service.WakeUp(t.Context(), caller("tenant", ""), runtimeID); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"UpgradeShoot c-first pending"}, f.listed(orders.OperationFilter{Kind: operation.KindUpgradeShoot})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if diff := cmp.Diff([]string{"c-first"}, f.shoots(orders.RuntimeFilter{Kind: operation.KindUpgradeShoot})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestPagesOfLists(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	for _, name := range []string{"c-1", "c-2", "c-3"} {
		f.provision("tenant", "", name)
	}

	var runtimes, operations []string

	for page := (orders.Page{Size: 2}); ; {
		list, err := f.service.ListRuntimes(t.Context(), orders.RuntimeFilter{}, page)
		if err != nil {
			t.Fatal(err)
		}

		for _, one := range list.Runtimes {
			runtimes = append(runtimes, one.ShootName)
		}

		if page.After = list.Next; page.After == "" {
			break
		}
	}

	for page := (orders.Page{Size: 2}); ; {
		list, err := f.service.ListOperations(t.Context(), orders.OperationFilter{}, page)
		if err != nil {
			t.Fatal(err)
		}

		for _, one := range list.Operations {
			operations = append(operations, one.ShootName)
		}

		if page.After = list.Next; page.After == "" {
			break
		}
	}

	want := []string{"c-3", "c-2", "c-1"}
	if diff := cmp.Diff([][]string{want, want}, [][]string{runtimes, operations}); diff != "" {
		t.Errorf("each entry appears once, newest first: -want +got\n%s", diff)
	}
}

func TestInvalidPages(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))

	for reason, c := range map[string]struct {
		page  orders.Page
		shoot string
		want  string
	}{
		"a page has entries":    {orders.Page{}, "", "first: must be between 1 and 100"},
		"a page has a limit":    {orders.Page{Size: 101}, "", "first: must be between 1 and 100"},
		"a cursor of this list": {orders.Page{Size: 1, After: "?"}, "", "after: must be an endCursor of this list"},
		"PostgreSQL has no NUL": {orders.Page{Size: 1}, "c\x00", "filter: a value contains a NUL character or is not valid UTF-8"},
	} {
		_, one := f.service.ListRuntimes(t.Context(), orders.RuntimeFilter{ShootName: c.shoot}, c.page)
		_, other := f.service.ListOperations(t.Context(), orders.OperationFilter{ShootName: c.shoot}, c.page)

		for _, err := range []error{one, other} {
			if known := failure.Of(err); !failure.Is(err, failure.Invalid) || known.Text != c.want {
				t.Errorf("%s: got %v, want %q", reason, err, c.want)
			}
		}
	}
}
