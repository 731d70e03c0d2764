package accountpool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// State is the state of an account in the pool. States are computed and never stored.
type State string

// The states of accounts. If several apply to an account, the first one in this list counts.
const (
	// Internal: reserved for the operators.
	Internal State = "internal"
	// Releasing: the last instance has released the account, and the broker is marking it as dirty.
	Releasing State = "releasing"
	// Dirty: the previous tenant has released the account, which must be emptied before another tenant can claim it.
	Dirty State = "dirty"
	// SharedState: several tenants can use the account.
	SharedState State = "shared"
	// Claimed: a tenant has a claim to the account.
	Claimed State = "claimed"
	// Labeled: the account has the label of a tenant that has no claim. The tenant's next instance claims it.
	Labeled State = "labeled"
	// Free: any tenant can claim the account.
	Free State = "free"
)

// States returns all states.
func States() []State {
	return []State{Internal, Releasing, Dirty, SharedState, Claimed, Labeled, Free}
}

// Status is an account with its state and the instances and Shoots that use it.
type Status struct {
	Account

	State State
	// Instances are the IDs of the instances that use the account. Shoots are the names of the Shoots that refer to it.
	Instances, Shoots []string
}

// Overview returns all accounts of the pool with their states, sorted by type and name. It reads Gardener first and the database
// afterward, so the state of an account that changes in between may be outdated.
func (p Pool) Overview(ctx context.Context) ([]Status, error) {
	accounts, err := p.Garden.Accounts(ctx, "")
	if err != nil {
		return nil, err
	}

	shoots, err := p.Garden.Shoots(ctx)
	if err != nil {
		return nil, err
	}

	claims, uses, err := p.Claims.List(ctx)
	if err != nil {
		return nil, err
	}

	claimed, instances := map[string]Claim{}, map[string][]string{}
	for _, claim := range claims {
		claimed[claim.Account] = claim
	}

	for _, use := range uses {
		instances[use.Account] = append(instances[use.Account], use.InstanceID)
	}

	found := make([]Status, 0, len(accounts))

	for _, account := range accounts {
		slices.Sort(shoots[account.Name])

		claim, isClaimed := claimed[account.Name]
		found = append(found, Status{
			Account: account, State: stateOf(account, claim, isClaimed), Instances: instances[account.Name], Shoots: shoots[account.Name],
		})
	}

	slices.SortFunc(found, func(a, b Status) int { return strings.Compare(a.Type+" "+a.Name, b.Type+" "+b.Name) })

	return found, nil
}

func stateOf(account Account, claim Claim, claimed bool) State {
	switch {
	case account.Internal:
		return Internal
	case claimed && claim.Releasing:
		return Releasing
	case account.Dirty:
		return Dirty
	case account.Shared:
		return SharedState
	case claimed:
		return Claimed
	case account.Tenant != "":
		return Labeled
	default:
		return Free
	}
}

// Free makes a dirty account free for another tenant after it was emptied. It calls allow before the change; if allow returns an
// error, nothing changes. Free returns the status before the change. The error is of kind NotFound if the pool has no such
// account, and of kind Conflict if the account is not dirty, is still used, or has changed in the meantime.
func (p Pool) Free(ctx context.Context, name string, allow func(Status) error) (Status, error) {
	all, err := p.Overview(ctx)
	if err != nil {
		return Status{}, err
	}

	at := slices.IndexFunc(all, func(status Status) bool { return status.Name == name })
	if at < 0 {
		return Status{}, failure.New(failure.NotFound, "The account pool has no account %q.", name)
	}

	status := all[at]
	if err := status.releasable(); err != nil {
		return status, err
	}

	if err := allow(status); err != nil {
		return status, err
	}

	account := status.Account
	account.Tenant, account.Dirty = "", false

	return status, p.Garden.SetLabels(ctx, account)
}

// releasable returns an error of kind Conflict unless the account is dirty and nothing uses it.
func (s Status) releasable() error {
	switch {
	case s.State != Dirty:
		return failure.New(failure.Conflict, "The state of the account %q is %s. Only accounts in the state dirty can be released.", s.Name, s.State)
	case len(s.Shoots) > 0:
		return failure.New(failure.Conflict, "Shoots still use the account %q: %s.", s.Name, strings.Join(s.Shoots, ", "))
	case len(s.Instances) > 0:
		return failure.New(failure.Conflict, "Instances still use the account %q: %s.", s.Name, strings.Join(s.Instances, ", "))
	default:
		return nil
	}
}

// Explain returns the meaning of the account's state, with advice for operators.
func (s Status) Explain() string {
	if err := s.releasable(); s.State == Dirty && err != nil {
		return failure.Of(err).Text
	}

	texts := map[State]string{
		Internal:    "The internal label reserves the account for the operators. The pool neither claims nor releases it.",
		Dirty:       "The tenant has released the account. Empty it at the provider, then release it: ebctl accounts release " + s.Name + " --reason REASON",
		SharedState: fmt.Sprintf("Several tenants share the account. Instances that use it: %d.", len(s.Instances)),
		Releasing:   "The last instance has released the account. The broker is about to mark it as dirty.",
		Claimed:     fmt.Sprintf("The tenant %s has claimed the account. Instances that use it: %d.", s.Tenant, len(s.Instances)),
		Labeled: "The account has the label of tenant " + s.Tenant + ", which has no claim. The next instance of the tenant claims it. " +
			"If the tenant is gone, empty the account and remove the tenantName label.",
		Free: "A tenant can claim the account.",
	}

	return texts[s.State]
}
