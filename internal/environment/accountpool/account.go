package accountpool

import (
	"context"
	"strings"
)

// Account is a cloud provider account. In the Gardener project, it is a CredentialsBinding or SecretBinding with the pool's labels.
type Account struct {
	// Name is the name of the binding. Shoots refer to it.
	Name string
	// Type is the value of the hyperscalerType label: the provider, optionally followed by the platform region, the region of the
	// provider, or both.
	Type string
	// Tenant is the value of the tenantName label: the tenancy.Label of the tenant that uses the account, or empty.
	Tenant string
	// Shared accounts serve several tenants. Internal accounts belong to the operators: the pool neither claims nor releases
	// them. Dirty accounts wait for their cleanup. EUAccess accounts are restricted to operators in the European Union.
	Shared, Internal, Dirty, EUAccess bool
	// Version is the resource version of the binding when it was read.
	Version string
}

// free reports whether a tenant can claim the account.
func (a Account) free() bool { return a.Tenant == "" && !a.Shared && !a.Internal && !a.Dirty }

// Selector describes the accounts that an instance may use.
type Selector struct {
	Type             string
	Shared, EUAccess bool
}

// provider returns the provider part of an account type.
func provider(accountType string) string {
	name, _, _ := strings.Cut(accountType, "_")

	return name
}

// matches reports whether the account satisfies the selector.
func (s Selector) matches(account Account) bool {
	return account.Type == s.Type && account.Shared == s.Shared && account.EUAccess == s.EUAccess
}

// String describes the selector to operators.
func (s Selector) String() string {
	text := "hyperscalerType " + s.Type
	if s.Shared {
		text = "shared, " + text
	}

	if s.EUAccess {
		text += ", euAccess"
	}

	return text
}

// Selector returns a selector for the accounts that the rule allows an instance to use. provider is Gardener's name for the
// instance's provider.
func (r Rule) Selector(provider, platformRegion, region string) Selector {
	accountType := provider
	if r.ByPlatformRegion {
		accountType += "_" + platformRegion
	}

	if r.ByRegion {
		accountType += "_" + region
	}

	return Selector{Type: accountType, Shared: r.Shared, EUAccess: r.EUAccess}
}

// Garden reads and labels the accounts of a Gardener project. The errors of its methods carry a failure.Kind.
type Garden interface {
	// Account returns the account with the given name, or an error of kind NotFound.
	Account(ctx context.Context, name string) (Account, error)
	// Accounts lists the accounts of the given type, or all accounts if the type is empty.
	Accounts(ctx context.Context, accountType string) ([]Account, error)
	// SetLabels writes the account's Tenant and Dirty fields as labels. The error is of kind Conflict if the account has changed
	// since it was read.
	SetLabels(ctx context.Context, account Account) error
	// Touch changes the account's resource version, so that requests with earlier versions fail. The error is of kind Conflict if
	// the account has changed since it was read.
	Touch(ctx context.Context, account Account) error
	// Shoots maps the name of each used account to the names of the Shoots that use it.
	Shoots(ctx context.Context) (map[string][]string, error)
}

// Claim is a tenant's exclusive right to one account of a given type. No two claims have the same key.
type Claim struct {
	Key

	// Account is the name of the account, or empty if none has been found yet.
	Account string
	// Releasing means that the last instance has released the account, and that the account is about to be marked as dirty.
	Releasing bool
}

// Key identifies a claim.
type Key struct {
	// Tenant is the tenancy.Label of the tenant.
	Tenant   string
	Type     string
	EUAccess bool
}

// Use records which account an instance uses.
type Use struct {
	Key

	InstanceID string
	// Shared means that several tenants share the account. If it is false, the account belongs to the claim with the same key.
	Shared bool
	// Account is the name of the account, or empty if none has been found yet.
	Account string
}

// Claims stores claims and uses in the broker's database. Each method is one transaction. Methods that change a claim first lock
// its row, so that no instance can join a claim while the claim is being released.
type Claims interface {
	Uses

	// Join records that the instance uses the account of the claim with the given key. It creates the claim if it does not exist.
	// If the claim is being released, Join returns the claim but records nothing.
	Join(ctx context.Context, instanceID string, key Key) (Claim, error)
	// Holds reports whether the instance uses the claim, the claim still has the same account, and the claim is not being released.
	Holds(ctx context.Context, instanceID string, claim Claim) (bool, error)
	// Reserve sets the account of a claim that has none. It reports false if the claim already has an account, is being released
	// or no longer exists, or if another claim has the account.
	Reserve(ctx context.Context, key Key, account string) (bool, error)
	// Drop removes the given account from the claim. It does nothing if the claim has a different account by then.
	Drop(ctx context.Context, key Key, account string) error
	// Reserved returns the names of the accounts that belong to claims for the given account type.
	Reserved(ctx context.Context, accountType string) ([]string, error)
	// BeginRelease records that the instance stops using the claim. If other instances also use the claim, it removes the
	// instance's use and reports false. Otherwise, it marks the claim as releasing, keeps the use until EndRelease, and reports
	// true. With an empty instance ID, it marks the claim only if no instance uses it.
	BeginRelease(ctx context.Context, instanceID string, key Key) (Claim, bool, error)
	// EndRelease removes the instance's use. It also removes the claim, unless keep is true because a cluster still uses the
	// account. claim is the result of BeginRelease. EndRelease does nothing if the claim is not being released, or if it has
	// another account by then: a later release of the tenant is then in progress.
	EndRelease(ctx context.Context, instanceID string, claim Claim, keep bool) error
	// Abandoned returns the IDs of deleted instances whose use of an account is still recorded, and the claims that no instance
	// uses.
	Abandoned(ctx context.Context) (instanceIDs []string, claims []Claim, err error)
	// List returns all claims and all uses.
	List(ctx context.Context) ([]Claim, []Use, error)
}

// Uses stores which instance uses which account.
type Uses interface {
	// Use returns the instance's use, or false if the instance uses no account.
	Use(ctx context.Context, instanceID string) (Use, bool, error)
	// Share records that the instance uses a shared account.
	Share(ctx context.Context, use Use) error
	// SharedUses maps each shared account to the number of instances that use it.
	SharedUses(ctx context.Context) (map[string]int, error)
	// Leave removes the instance's use without changing any claim.
	Leave(ctx context.Context, instanceID string) error
}
