package accountpool

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// ErrNoneFree reports that no suitable account is free, or that the account of the tenant is being released.
var ErrNoneFree = errors.New("no account is free")

// maxRounds limits how often Assign tries to assign an account. It tries again if another replica or program has taken the account
// that it has chosen. After maxRounds attempts, Assign returns a transient error.
const maxRounds = 20

// Pool assigns accounts to instances. It is safe for concurrent use, even by several replicas.
type Pool struct {
	Garden Garden
	Claims Claims
}

// Request is a request for an account for an instance.
type Request struct {
	Selector

	InstanceID string
	// Tenant is the label of the tenant for whom the instance was ordered.
	Tenant string
}

func (r Request) key() Key { return Key{Tenant: r.Tenant, Type: r.Type, EUAccess: r.EUAccess} }

// Assign returns the name of the account that the instance uses, and assigns one if the instance uses none. Repeated calls return
// the same account as long as the tenant may use the account. The error wraps ErrNoneFree if the caller should try again later.
func (p Pool) Assign(ctx context.Context, request Request) (string, error) {
	if request.Shared {
		return p.share(ctx, request)
	}

	use, uses, err := p.Claims.Use(ctx, request.InstanceID)
	if err != nil {
		return "", err
	}

	// An instance keeps its account when the rules change. A recorded use with a different tenant, restriction or provider stems
	// from a deleted instance with the same ID and is ignored.
	key := request.key()
	if uses && !use.Shared && use.Tenant == key.Tenant && use.EUAccess == key.EUAccess && provider(use.Type) == provider(key.Type) {
		key = use.Key
	}

	for range maxRounds {
		claim, err := p.Claims.Join(ctx, request.InstanceID, key)
		if err != nil {
			return "", err
		}

		switch {
		case claim.Releasing && uses && !use.Shared && use.Key == key:
			// The release of a deleted instance with the same ID was interrupted. The sweep does not complete it, because the instance exists.
			if err := p.release(ctx, request.InstanceID, key); err != nil {
				return "", err
			}

			continue
		case claim.Releasing:
			return "", ErrNoneFree
		}

		if claim.Account != "" {
			usable, err := p.confirm(ctx, request.InstanceID, claim)
			if err != nil || usable {
				return claim.Account, err
			}
		} else if err := p.reserve(ctx, key); err != nil {
			return "", err
		}
	}

	return "", failure.New(failure.Transient, "other programs are changing accounts of type %s at the same time", key.Type).
		WithReason(failure.ReasonConflict, failure.ComponentGardenerClient)
}

// confirm writes the claim's tenant into the label of the claim's account. It reports false if the caller has to read the claim
// again: either the account has changed, or the tenant can no longer use the account and confirm has removed the account from the
// claim.
func (p Pool) confirm(ctx context.Context, instanceID string, claim Claim) (bool, error) {
	account, err := p.Garden.Account(ctx, claim.Account)

	switch {
	case failure.Is(err, failure.NotFound):
		return false, p.Claims.Drop(ctx, claim.Key, claim.Account)
	case err != nil:
		return false, err
	case account.Tenant == claim.Tenant && !account.Dirty && !account.Shared:
		return true, nil
	case !account.free():
		return false, p.Claims.Drop(ctx, claim.Key, claim.Account)
	}

	// If this replica was frozen for longer than its lease, another replica may have released the claim since it was read. If a
	// release begins after this check, it changes the version of the account, and writing the label fails.
	held, err := p.Claims.Holds(ctx, instanceID, claim)
	if err != nil || !held {
		return false, err
	}

	account.Tenant = claim.Tenant

	err = p.Garden.SetLabels(ctx, account)
	if failure.Is(err, failure.Conflict) || failure.Is(err, failure.NotFound) {
		return false, nil
	}

	return err == nil, err
}

// reserve chooses an account for the claim with the given key, and stores it in the claim. It prefers an account that already has
// the tenant's label to a free one. The error is ErrNoneFree if there are no such accounts.
func (p Pool) reserve(ctx context.Context, key Key) error {
	candidates, err := p.candidates(ctx, key)
	if err != nil {
		return err
	}

	for _, candidate := range candidates {
		reserved, err := p.Claims.Reserve(ctx, key, candidate.Name)
		if err != nil || reserved {
			return err
		}

		// Another replica may already have chosen an account for the same claim. The caller reads the claim again.
		if candidate.Tenant == key.Tenant {
			return nil
		}
	}

	return ErrNoneFree
}

// candidates returns the accounts that the tenant may claim, in order of preference. Each tenant starts at a different free
// account, so that concurrent tenants rarely try the same one.
func (p Pool) candidates(ctx context.Context, key Key) ([]Account, error) {
	accounts, err := p.Garden.Accounts(ctx, key.Type)
	if err != nil {
		return nil, err
	}

	reserved, err := p.Claims.Reserved(ctx, key.Type)
	if err != nil {
		return nil, err
	}

	selector := Selector{Type: key.Type, EUAccess: key.EUAccess}

	var own, free []Account

	for _, account := range accounts {
		switch {
		case !selector.matches(account) || slices.Contains(reserved, account.Name):
		case account.Tenant == key.Tenant && !account.Dirty:
			own = append(own, account)
		case account.free():
			free = append(free, account)
		}
	}

	byName(own)
	byName(free)

	if len(free) > 0 {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(key.Tenant)) // never fails
		start := int(hash.Sum32()) % len(free)
		free = slices.Concat(free[start:], free[:start])
	}

	return append(own, free...), nil
}
