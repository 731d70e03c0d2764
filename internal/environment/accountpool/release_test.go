package accountpool_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
)

// wantNothingStored checks that no claims or uses are left.
func (f *fixture) wantNothingStored() {
	f.Helper()

	claims, uses, err := f.pool.Claims.List(f.Context())
	if err != nil || len(claims)+len(uses) > 0 {
		f.Errorf("stored are the claims %v and the uses %v, %v", claims, uses, err)
	}
}

func TestLastInstanceMakesTheAccountDirty(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a", "aws")
		f.assign("i1", "t1")
		f.assign("i2", "t1")
		f.addShoot("c-i1", "a")

		if err := f.pool.Release(f.Context(), "i1", "c-i1"); !errors.Is(err, accountpool.ErrInUse) {
			f.Errorf("the cluster still exists, got %v", err)
		}

		f.removeShoot("c-i1")
		f.release("i1")
		f.wantLabels("another instance uses the account", "a", "tenantName=t1")
		f.release("i1")
		f.release("i2")
		f.wantLabels("no instance uses the account", "a", "tenantName=t1", "dirty=true")
		f.wantNothingStored()

		_, err := f.tryAssign("i3", "t1")
		f.wantNoneFree("the account waits for its cleanup", err)
	})
}

func TestAccountsThatDoNotBecomeDirty(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("used", "aws")
		f.add("internal", "azure", gardenclient.LabelInternal)
		f.add("shared", "gcp", gardenclient.LabelShared)
		f.label("internal", gardenclient.LabelTenant, "t1")

		azure := func(r *accountpool.Request) { r.Type = "azure" }
		f.assign("i1", "t1")
		f.assign("i2", "t1", azure)
		f.assign("i3", "t1", shared, func(r *accountpool.Request) { r.Type = "gcp" })
		f.addShoot("c-foreign", "used")

		f.release("i1")
		f.wantLabels("a foreign Shoot uses it", "used", "tenantName=t1")
		f.release("i2")
		f.wantLabels("operators reserved it", "internal", "tenantName=t1", "internal=true")
		f.release("i3")
		f.wantLabels("other tenants use it", "shared", "shared=true")
		f.release("i4") // never had an account

		if got := f.assign("i5", "t1"); got != "used" {
			f.Errorf("got %s, want the account that the tenant kept", got)
		}

		f.release("i5")
		f.removeShoot("c-foreign")

		if err := f.pool.Sweep(f.Context()); err != nil {
			f.Fatal(err)
		}

		f.wantLabels("the foreign Shoot is gone", "used", "tenantName=t1", "dirty=true")
		f.wantNothingStored()
	})
}

func TestReleaseBlocksNewInstances(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a", "aws")
		f.assign("i1", "t1")

		key := accountpool.Key{Tenant: "t1", Type: "aws"}
		if _, last, err := f.pool.Claims.BeginRelease(f.Context(), "i1", key); !last || err != nil {
			f.Fatal(last, err)
		}

		_, err := f.tryAssign("i2", "t1")
		f.wantNoneFree("the account is about to become dirty", err)
		f.release("i1")
		f.wantLabels("the release ended", "a", "tenantName=t1", "dirty=true")

		f.add("b", "aws")

		if got := f.assign("i2", "t1"); got != "b" {
			f.Errorf("got %s", got)
		}
	})
}

func TestSweepCompletesSkippedReleases(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a", "aws")
		f.add("b", "aws")
		f.add("s", "aws", gardenclient.LabelShared)
		f.order("alive")

		kept := f.assign("alive", "t1")
		lost := f.assign("deleted", "t2")
		f.assign("deleted-trial", "t3", shared)
		f.addShoot("c-left", lost)

		for range 2 {
			if err := f.pool.Sweep(f.Context()); err != nil {
				f.Fatal(err)
			}
		}

		f.wantLabels("a cluster is left over", lost, "tenantName=t2")
		f.removeShoot("c-left")

		if err := f.pool.Sweep(f.Context()); err != nil {
			f.Fatal(err)
		}

		f.wantLabels("its instance exists", kept, "tenantName=t1")
		f.wantLabels("its instance does not exist", lost, "tenantName=t2", "dirty=true")

		claims, uses, err := f.pool.Claims.List(f.Context())
		if err != nil || len(claims) != 1 || len(uses) != 1 || uses[0].Account != kept {
			f.Errorf("stored are the claims %v and the uses %v, %v", claims, uses, err)
		}
	})
}

// lateGarden runs a function before it labels an account, as if the replica was frozen in between.
type lateGarden struct {
	accountpool.Garden

	frozen func()
}

func (g lateGarden) SetLabels(ctx context.Context, account accountpool.Account) error {
	g.frozen()

	return g.Garden.SetLabels(ctx, account)
}

// TestFrozenReplicaCannotLabelAReleasedAccount freezes a replica just before it writes the tenant. Meanwhile, the instance is
// deleted. The account stays free, because its version has changed.
func TestFrozenReplicaCannotLabelAReleasedAccount(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a", "aws")

		once := sync.OnceFunc(func() {
			f.release("i1")
			f.wantNothingStored()
			f.order("i1") // ends the loop of the frozen replica: it claims the account for an instance that exists again
		})

		late := accountpool.Pool{Claims: f.pool.Claims, Garden: lateGarden{f.pool.Garden, func() {
			once()

			if labels := f.binding("a").Labels; labels[gardenclient.LabelTenant] != "" {
				f.Errorf("the account has the labels %v after its release", labels)
			}
		}}}

		name, err := late.Assign(f.Context(), accountpool.Request{InstanceID: "i1", Tenant: "t1", Selector: accountpool.Selector{Type: "aws"}})
		if err != nil {
			f.Fatal(err)
		}

		_, uses, err := f.pool.Claims.List(f.Context())
		if err != nil || len(uses) != 1 || uses[0].Account != name {
			f.Errorf("the account %s is used without a row: %v, %v", name, uses, err)
		}
	})
}

// TestInterruptedReleaseOfAnInstanceWithTheSameID orders an instance with the ID of a deleted one whose release was interrupted. The sweep
// finds only instances that no longer exist, so the new instance must complete the release.
func TestInterruptedReleaseOfAnInstanceWithTheSameID(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a", "aws")
		f.assign("i1", "t1")

		key := accountpool.Key{Tenant: "t1", Type: "aws"}

		claim, last, err := f.pool.Claims.BeginRelease(f.Context(), "i1", key)
		if err != nil || !last {
			f.Fatal(last, err)
		}

		f.add("b", "aws")
		f.order("i1")

		if err := f.pool.Sweep(f.Context()); err != nil {
			f.Fatal(err)
		}

		if got := f.assign("i1", "t1"); got != "b" {
			f.Errorf("got %s, but a waits for its cleanup", got)
		}

		f.wantLabels("the deleted instance has released it", "a", "tenantName=t1", "dirty=true")

		// A replica that was frozen during the deletion ends its release late.
		if err := f.pool.Claims.EndRelease(f.Context(), "i1", claim, false); err != nil {
			f.Fatal(err)
		}

		if _, uses, err := f.pool.Claims.Use(f.Context(), "i1"); err != nil || !uses {
			f.Errorf("a late end of the former release removed the account of the new instance: %v", err)
		}
	})
}

// TestLateEndOfARelease lets a frozen replica end a release after another replica has ended it, while the tenant's next account is being
// released. Until the end of that release, no instance may join the claim: the other replica is about to mark the account as dirty.
func TestLateEndOfARelease(t *testing.T) {
	each(t, func(f *fixture) {
		f.add("a", "aws")
		f.assign("i1", "t1")

		key := accountpool.Key{Tenant: "t1", Type: "aws"}

		late, last, err := f.pool.Claims.BeginRelease(f.Context(), "i1", key)
		if err != nil || !last {
			f.Fatal(last, err)
		}

		if err := f.pool.Release(f.Context(), "i1", "c-i1"); err != nil {
			f.Fatal(err)
		}

		f.add("b", "aws")
		f.assign("i2", "t1")

		if _, last, err := f.pool.Claims.BeginRelease(f.Context(), "i2", key); err != nil || !last {
			f.Fatal(last, err)
		}

		for _, keep := range []bool{true, false} {
			if err := f.pool.Claims.EndRelease(f.Context(), "i1", late, keep); err != nil {
				f.Fatal(err)
			}

			if got, err := f.tryAssign("i3", "t1"); !errors.Is(err, accountpool.ErrNoneFree) {
				f.Errorf("with keep = %t, a late end of the former release ended the present one: got account %q, %v", keep, got, err)
			}
		}
	})
}
