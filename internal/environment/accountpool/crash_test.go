package accountpool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var errKilled = errors.New("the replica was killed")

// killer counts the calls to the garden and the database. It fails call number at, before or after the call takes effect, and all
// later calls.
type killer struct {
	calls, at int
	after     bool
}

// call runs the call unless the replica is dead.
func (k *killer) call(do func() error) error {
	k.calls++

	switch {
	case k.at == 0 || k.calls < k.at:
		return do()
	case k.calls == k.at && k.after:
		return errors.Join(errKilled, do())
	default:
		return errKilled
	}
}

func killed[T any](k *killer, do func() (T, error)) (result T, err error) {
	err = k.call(func() (err error) {
		result, err = do()

		return err
	})

	return result, err
}

type dyingGarden struct {
	accountpool.Garden

	*killer
}

func (g dyingGarden) Account(ctx context.Context, name string) (accountpool.Account, error) {
	return killed(g.killer, func() (accountpool.Account, error) { return g.Garden.Account(ctx, name) })
}

func (g dyingGarden) SetLabels(ctx context.Context, account accountpool.Account) error {
	return g.call(func() error { return g.Garden.SetLabels(ctx, account) })
}

func (g dyingGarden) Touch(ctx context.Context, account accountpool.Account) error {
	return g.call(func() error { return g.Garden.Touch(ctx, account) })
}

func (g dyingGarden) Shoots(ctx context.Context) (map[string][]string, error) {
	return killed(g.killer, func() (map[string][]string, error) { return g.Garden.Shoots(ctx) })
}

type dyingClaims struct {
	accountpool.Claims

	*killer
}

func (c dyingClaims) Join(ctx context.Context, instanceID string, key accountpool.Key) (accountpool.Claim, error) {
	return killed(c.killer, func() (accountpool.Claim, error) { return c.Claims.Join(ctx, instanceID, key) })
}

func (c dyingClaims) Holds(ctx context.Context, instanceID string, claim accountpool.Claim) (bool, error) {
	return killed(c.killer, func() (bool, error) { return c.Claims.Holds(ctx, instanceID, claim) })
}

func (c dyingClaims) Reserve(ctx context.Context, key accountpool.Key, account string) (bool, error) {
	return killed(c.killer, func() (bool, error) { return c.Claims.Reserve(ctx, key, account) })
}

func (c dyingClaims) Share(ctx context.Context, use accountpool.Use) error {
	return c.call(func() error { return c.Claims.Share(ctx, use) })
}

func (c dyingClaims) BeginRelease(ctx context.Context, instanceID string, key accountpool.Key) (claim accountpool.Claim, last bool, err error) {
	err = c.call(func() (err error) {
		claim, last, err = c.Claims.BeginRelease(ctx, instanceID, key)

		return err
	})

	return claim, last, err
}

func (c dyingClaims) EndRelease(ctx context.Context, instanceID string, claim accountpool.Claim, keep bool) error {
	return c.call(func() error { return c.Claims.EndRelease(ctx, instanceID, claim, keep) })
}

func (c dyingClaims) Leave(ctx context.Context, instanceID string) error {
	return c.call(func() error { return c.Claims.Leave(ctx, instanceID) })
}

// TestKilledAtEveryCall assigns an account to an instance, and releases the account. In each run, the replica is killed at
// another call, and a second replica repeats the work. The end is always the same: one account is dirty, and the rest is free.
func TestKilledAtEveryCall(t *testing.T) {
	for _, after := range []bool{false, true} {
		for _, kind := range []string{"own", "shared"} {
			t.Run(fmt.Sprintf("%s, after the effect: %t", kind, after), func(t *testing.T) {
				for at := 1; ; at++ {
					if !killOnce(t, storagetest.SQLite(t), &killer{at: at, after: after}, kind) {
						if at < 4 {
							t.Errorf("only %d calls were interrupted", at-1)
						}

						return
					}
				}
			})
		}
	}
}

// killOnce runs the scenario and reports whether the replica was killed.
func killOnce(t *testing.T, db *storage.DB, killer *killer, kind string) bool {
	t.Helper()

	f := newFixture(t, db)
	f.add("a", "aws")
	f.add("b", "aws")
	f.add("s", "aws", "shared")

	dying, surviving := accountpool.Pool{Garden: dyingGarden{f.pool.Garden, killer}, Claims: dyingClaims{f.pool.Claims, killer}}, f.pool
	request := accountpool.Request{InstanceID: "i1", Tenant: "t1", Selector: accountpool.Selector{Type: "aws", Shared: kind == "shared"}}

	// do runs the work on the first replica, and again on the second one if the first is killed.
	do := func(work func(accountpool.Pool) error) {
		err := work(dying)
		if errors.Is(err, errKilled) {
			err = work(surviving)
		}

		if err != nil {
			t.Fatalf("killed at call %d: %v", killer.at, err)
		}
	}

	var first, again string

	do(func(pool accountpool.Pool) (err error) {
		first, err = pool.Assign(t.Context(), request)

		return err
	})
	do(func(pool accountpool.Pool) (err error) {
		again, err = pool.Assign(t.Context(), request)

		return err
	})

	if first != again || first == "" {
		t.Errorf("killed at call %d: the instance got %q, then %q", killer.at, first, again)
	}

	do(func(pool accountpool.Pool) error { return pool.Release(t.Context(), "i1", "c-i1") })
	f.wantNothingStored()

	if kind == "shared" {
		f.wantLabels("shared accounts are never dirty", "s", "shared=true")
	} else {
		other := map[string]string{"a": "b", "b": "a"}[first]
		f.wantLabels("the tenant has left it", first, "tenantName=t1", "dirty=true")
		f.wantLabels("nobody has used it", other)
	}

	return killer.calls >= killer.at
}

// TestManyTenantsAtOnce lets two replicas assign accounts to tenants with two instances each, at the same time. There are as many
// accounts as tenants.
func TestManyTenantsAtOnce(t *testing.T) {
	const tenants = 24

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		f := newFixture(t, db)
		for i := range tenants {
			f.add(fmt.Sprintf("account-%02d", i), "aws")
		}

		var (
			running  sync.WaitGroup
			mutex    sync.Mutex
			byTenant = map[string]map[string]bool{}
			failed   atomic.Int32
		)

		for instance := range 2 * tenants {
			running.Go(func() {
				tenant := fmt.Sprintf("t%d", instance%tenants)

				name, err := f.tryAssign(fmt.Sprintf("i%d", instance), tenant)
				for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); {
					name, err = f.tryAssign(fmt.Sprintf("i%d", instance), tenant)
				}

				if err != nil {
					failed.Add(1)
					t.Errorf("%s got no account: %v", tenant, err)
				}

				mutex.Lock()
				defer mutex.Unlock()

				if byTenant[tenant] == nil {
					byTenant[tenant] = map[string]bool{}
				}

				byTenant[tenant][name] = true
			})
		}

		running.Wait()

		taken := map[string]string{}

		for tenant, names := range byTenant {
			if len(names) != 1 {
				t.Errorf("tenant %s has the accounts %v, want one", tenant, names)
			}

			for name := range names {
				if other, twice := taken[name]; twice {
					t.Errorf("account %s has the tenants %s and %s", name, tenant, other)
				}

				taken[name] = tenant
				f.wantLabels("the tenant is visible", name, "tenantName="+tenant)
			}
		}
	})
}
