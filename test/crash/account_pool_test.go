package crash

import (
	"context"
	"errors"
	"net/http"
	"testing"

	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/process/crashtest"
	claims "github.com/environment-broker/environment-broker/storage/accounts"
)

// pool is the account pool of a scenario: CredentialsBindings in the fake garden, and claims in the broker's database.
type pool struct {
	*testing.T

	garden *fakegarden.Memory
	claims *claims.Store
	rules  accountpool.Rules
}

// poolAccounts returns the names of the accounts, each with its labels except the type.
func poolAccounts() map[string][]string {
	return map[string][]string{"pool-a": nil, "pool-b": nil, "pool-shared": {gardenclient.LabelShared}}
}

// newPool creates a pool with its CredentialsBindings, which it deletes at the end of the run.
func newPool(t *testing.T, garden *fakegarden.Memory, stored *claims.Store) *pool {
	t.Helper()

	rules, err := accountpool.ParseRules([]byte("rule: [aws, trial -> S]"))
	if err != nil {
		t.Fatal(err)
	}

	p := &pool{T: t, garden: garden, claims: stored, rules: rules}

	for name, labels := range poolAccounts() {
		provider := "aws"
		if len(labels) > 0 {
			provider = "azure" // the provider of trials
		}

		binding := p.binding(name)
		binding.Labels = map[string]string{gardenclient.LabelType: provider}
		binding.Provider.Type = provider
		binding.CredentialsRef = corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: provider, Namespace: garden.Namespace()}

		for _, label := range labels {
			binding.Labels[label] = "true"
		}

		if err := garden.Client().Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() {
			if err := garden.Client().Delete(context.Background(), p.binding(name)); err != nil {
				t.Error(err)
			}
		})
	}

	return p
}

func (p *pool) binding(name string) *securityv1alpha1.CredentialsBinding {
	return &securityv1alpha1.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.garden.Namespace()}}
}

// behind returns the pool for a replica that calls Gardener and the claims through its proxy.
func (p *pool) behind(proxy *crashtest.Proxy) accountpool.Instances {
	transport := proxy.Client(p.garden.Handler(), func(r *http.Request) string { return "garden-" + r.Method }).Transport

	garden, err := gardenclient.New(&rest.Config{Host: "http://garden.example.com", Transport: transport}, gardenclient.Options{
		Namespace: p.garden.Namespace(), Kind: gardenclient.CredentialsBinding,
	})
	if err != nil {
		p.Fatal(err)
	}

	return accountpool.Instances{Rules: p.rules, Pool: accountpool.Pool{Garden: garden, Claims: proxiedClaims{p.claims, proxy}}}
}

// poolState is the state of the pool at the end of a run. No account may be lost: each must be free, dirty, or claimed by a tenant
// with an instance.
type poolState struct {
	Tenants, Dirty, Claims, Uses int
	// Lost is the number of accounts with a tenant that are neither dirty nor claimed.
	Lost int
}

// state first runs the job that sweeps the pool, because a frozen replica can claim an account for an instance that has been
// deleted. In racy scenarios, the creation may be canceled before or after the account gets its tenant.
func (p *pool) state(racy bool) poolState {
	p.Helper()

	if err := p.behind(crashtest.Transparent()).Pool.Sweep(p.Context()); err != nil {
		p.Fatal(err)
	}

	stored, uses, err := p.claims.List(p.Context())
	if err != nil {
		p.Fatal(err)
	}

	state := poolState{Claims: len(stored), Uses: len(uses)}

	claimed := map[string]bool{}
	for _, claim := range stored {
		claimed[claim.Account] = true
	}

	for name := range poolAccounts() {
		binding := p.binding(name)
		if err := p.garden.Client().Get(p.Context(), client.ObjectKeyFromObject(binding), binding); err != nil {
			p.Fatal(err)
		}

		tenant, dirty := binding.Labels[gardenclient.LabelTenant] != "", binding.Labels[gardenclient.LabelDirty] != ""

		for counter, counts := range map[*int]bool{&state.Tenants: tenant, &state.Dirty: dirty, &state.Lost: tenant && !dirty && !claimed[name]} {
			if counts {
				*counter++
			}
		}
	}

	if racy {
		state.Tenants, state.Dirty = 0, 0
	}

	return state
}

// proxiedClaims accesses the claims through the proxy of a replica.
type proxiedClaims struct {
	*claims.Store

	proxy *crashtest.Proxy
}

func (c proxiedClaims) call(ctx context.Context, name string, call func(ctx context.Context) error) error {
	err := c.proxy.Call(ctx, name, call)
	if errors.Is(err, crashtest.ErrLost) {
		return failure.Wrap(failure.Transient, err, "the database does not respond correctly")
	}

	return err
}

func (c proxiedClaims) Join(ctx context.Context, instanceID string, key accountpool.Key) (claim accountpool.Claim, err error) {
	err = c.call(ctx, "Join", func(ctx context.Context) (err error) {
		claim, err = c.Store.Join(ctx, instanceID, key)

		return err
	})

	return claim, err
}

func (c proxiedClaims) Reserve(ctx context.Context, key accountpool.Key, account string) (reserved bool, err error) {
	err = c.call(ctx, "Reserve", func(ctx context.Context) (err error) {
		reserved, err = c.Store.Reserve(ctx, key, account)

		return err
	})

	return reserved, err
}

func (c proxiedClaims) Holds(ctx context.Context, instanceID string, claim accountpool.Claim) (held bool, err error) {
	err = c.call(ctx, "Holds", func(ctx context.Context) (err error) {
		held, err = c.Store.Holds(ctx, instanceID, claim)

		return err
	})

	return held, err
}

func (c proxiedClaims) Share(ctx context.Context, use accountpool.Use) error {
	return c.call(ctx, "Share", func(ctx context.Context) error { return c.Store.Share(ctx, use) })
}

func (c proxiedClaims) Leave(ctx context.Context, instanceID string) error {
	return c.call(ctx, "Leave", func(ctx context.Context) error { return c.Store.Leave(ctx, instanceID) })
}

func (c proxiedClaims) BeginRelease(ctx context.Context, instanceID string, key accountpool.Key) (claim accountpool.Claim, last bool, err error) {
	err = c.call(ctx, "BeginRelease", func(ctx context.Context) (err error) {
		claim, last, err = c.Store.BeginRelease(ctx, instanceID, key)

		return err
	})

	return claim, last, err
}

func (c proxiedClaims) EndRelease(ctx context.Context, instanceID string, claim accountpool.Claim, keep bool) error {
	return c.call(ctx, "EndRelease", func(ctx context.Context) error { return c.Store.EndRelease(ctx, instanceID, claim, keep) })
}
