package accountpool_test

import (
	"context"
	"testing"

	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
)

func euAccess(request *accountpool.Request) { request.EUAccess = true }

func shared(request *accountpool.Request) { request.Shared = true }

func TestTenantGetsOneAccountOfItsOwn(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a", "aws")
		f.add("b", "aws")
		f.add("other", "azure")

		first, second := f.assign("i1", "t1"), f.assign("i2", "t2")
		if first == second || first == "other" || second == "other" {
			f.Errorf("two tenants got %s and %s", first, second)
		}

		f.wantLabels("the tenant is visible in the garden", first, "tenantName=t1")

		if again := f.assign("i1", "t1"); again != first {
			f.Errorf("a repeated call returned %s, want %s", again, first)
		}

		if same := f.assign("i3", "t1"); same != first {
			f.Errorf("another instance of the tenant got %s, want %s", same, first)
		}

		_, err := f.tryAssign("i4", "t3")
		f.wantNoneFree("all accounts have a tenant", err)

		f.add("late", "aws")

		if got := f.assign("i4", "t3"); got != "late" {
			f.Errorf("got %s, want the account that was added", got)
		}
	})
}

func TestOnlyFreeAccountsOfTheKindAreClaimed(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("dirty", "aws", gardenclient.LabelDirty)
		f.add("internal", "aws", gardenclient.LabelInternal)
		f.add("shared", "aws", gardenclient.LabelShared)
		f.add("eu", "aws", gardenclient.LabelEUAccess)
		f.add("region", "aws_eu-central-1")

		_, err := f.tryAssign("i1", "t1")
		f.wantNoneFree("no account is free for other tenants", err)

		if got := f.assign("i2", "t1", euAccess); got != "eu" {
			f.Errorf("got %s, want the account with EU access", got)
		}

		if got := f.assign("i3", "t1", func(r *accountpool.Request) { r.Type = "aws_eu-central-1" }); got != "region" {
			f.Errorf("got %s, want the account of the region", got)
		}
	})
}

func TestAccountThatAlreadyHasTheTenant(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a", "aws")
		f.add("b", "aws", gardenclient.LabelInternal)
		f.add("c", "aws")
		f.label("b", gardenclient.LabelTenant, "t1")
		f.label("c", gardenclient.LabelTenant, "t2")

		if got := f.assign("i1", "t1"); got != "b" {
			f.Errorf("got %s, want the account that an operator gave to the tenant", got)
		}

		if got := f.assign("i2", "t2"); got != "c" {
			f.Errorf("got %s, want the account that another broker gave to the tenant", got)
		}
	})
}

// TestAccountThatIsLost checks that Assign chooses another account if the earlier one is dirty, has another tenant, or is gone.
//
//faults:row account-pool.md#gardener 404: somebody has removed the account
func TestAccountThatIsLost(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a", "aws")

		if got := f.assign("i1", "t1"); got != "a" {
			f.Fatalf("got %s", got)
		}

		f.add("b", "aws")
		f.label("a", gardenclient.LabelDirty, "true")

		if got := f.assign("i1", "t1"); got != "b" {
			f.Errorf("got %s, want a clean account", got)
		}

		f.add("c", "aws")
		f.label("b", gardenclient.LabelTenant, "t2")

		if got := f.assign("i1", "t1"); got != "c" {
			f.Errorf("got %s, want an account of the tenant", got)
		}

		f.add("d", "aws")

		if err := f.garden.Delete(f.Context(), f.binding("c")); err != nil {
			f.Fatal(err)
		}

		if got := f.assign("i1", "t1"); got != "d" {
			f.Errorf("got %s, want an account that exists", got)
		}
	})
}

// changing is a garden in which another program changes an account before its labels are written.
type changing struct {
	accountpool.Garden

	change func(name string)
}

func (c changing) SetLabels(ctx context.Context, account accountpool.Account) error {
	c.change(account.Name)

	return c.Garden.SetLabels(ctx, account) //nolint:wrapcheck // the error of the garden
}

// TestAccountThatChanges changes an account after the pool has read it.
//
//faults:row account-pool.md#gardener 409: the account has changed since it was read
func TestAccountThatChanges(t *testing.T) {
	for name, c := range map[string]struct{ label, value, want string }{
		"harmless":      {"team", "x", "a"},
		"another owner": {gardenclient.LabelTenant, "t2", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(f *fixture) {
				f.add("a", "aws")

				changed := false
				f.pool.Garden = changing{f.pool.Garden, func(name string) {
					if changed {
						return
					}

					changed = true
					f.label(name, c.label, c.value)
					f.add("b", "aws")
				}}

				if got := f.assign("i1", "t1"); got != c.want {
					f.Errorf("got %s, want %s", got, c.want)
				}

				f.wantLabels("the tenant has the account", c.want, append(map[string][]string{"a": {c.label + "=" + c.value}}[c.want], "tenantName=t1")...)
			})
		})
	}
}

func TestInstanceKeepsItsAccount(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a", "aws")
		f.add("b", "aws_cf-eu10")
		f.add("s1", "aws", gardenclient.LabelShared)

		first := f.assign("i1", "t1")

		if got := f.assign("i1", "t1", func(r *accountpool.Request) { r.Type = "aws_cf-eu10" }); got != first {
			f.Errorf("got %s after a change of the rules, want %s", got, first)
		}

		trial := f.assign("i2", "t2", shared)

		f.add("s0", "aws", gardenclient.LabelShared)
		f.addShoot("c-other", "s1")

		if got := f.assign("i2", "t2", shared); got != trial {
			f.Errorf("got %s, want %s, although another account has fewer Shoots by now", got, trial)
		}

		if got := f.assign("i1", "t3", func(r *accountpool.Request) { r.Type = "aws_cf-eu10" }); got != "b" {
			f.Errorf("got %s, want an account of the tenant that reuses the ID", got)
		}
	})
}

func TestSharedAccountWithTheFewestShoots(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("s1", "aws", gardenclient.LabelShared)
		f.add("s2", "aws", gardenclient.LabelShared)
		f.add("s3", "aws", gardenclient.LabelShared, gardenclient.LabelDirty)
		f.add("s4", "aws", gardenclient.LabelShared, gardenclient.LabelEUAccess)
		f.addShoot("c-one", "s1")
		f.addShoot("c-two", "s1")
		f.addShoot("c-three", "s2")

		if got := f.assign("i1", "t1", shared); got != "s2" {
			f.Errorf("got %s, want the account with one Shoot", got)
		}

		f.addShoot("c-four", "s2")

		if got := f.assign("i2", "t2", shared); got != "s1" {
			f.Errorf("got %s, want the account with fewer instances, as both have two Shoots", got)
		}

		if got := f.assign("i3", "t3", shared, euAccess); got != "s4" {
			f.Errorf("got %s, want the account with EU access", got)
		}

		f.wantLabels("shared accounts have no tenant", "s1", "shared=true")

		_, err := f.tryAssign("i4", "t4", shared, func(r *accountpool.Request) { r.Type = "gcp" })
		f.wantNoneFree("there is no shared account", err)
	})
}
