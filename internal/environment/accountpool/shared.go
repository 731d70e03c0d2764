package accountpool

import (
	"cmp"
	"context"
	"slices"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// share returns the instance's shared account. If the instance has none, or may no longer use it, share chooses the shared
// account with the fewest Shoots. If several have equally few, it chooses the one with the fewest instances.
func (p Pool) share(ctx context.Context, request Request) (string, error) {
	use, uses, err := p.Claims.Use(ctx, request.InstanceID)
	if err != nil {
		return "", err
	}

	if uses && use.Shared && use.Tenant == request.Tenant && use.EUAccess == request.EUAccess && provider(use.Type) == provider(request.Type) {
		account, err := p.Garden.Account(ctx, use.Account)
		if err == nil && account.Shared && !account.Dirty && account.EUAccess == request.EUAccess {
			return account.Name, nil
		}

		if err != nil && !failure.Is(err, failure.NotFound) {
			return "", err
		}
	}

	chosen, err := p.leastUsed(ctx, request.Selector)
	if err != nil {
		return "", err
	}

	return chosen, p.Claims.Share(ctx, Use{InstanceID: request.InstanceID, Key: request.key(), Shared: true, Account: chosen})
}

// leastUsed returns the name of the shared account with the fewest Shoots among those that match the selector. The error is
// ErrNoneFree if none matches.
func (p Pool) leastUsed(ctx context.Context, selector Selector) (string, error) {
	accounts, err := p.Garden.Accounts(ctx, selector.Type)
	if err != nil {
		return "", err
	}

	accounts = slices.DeleteFunc(accounts, func(account Account) bool { return !selector.matches(account) || account.Dirty })
	if len(accounts) == 0 {
		return "", ErrNoneFree
	}

	shoots, err := p.Garden.Shoots(ctx)
	if err != nil {
		return "", err
	}

	uses, err := p.Claims.SharedUses(ctx)
	if err != nil {
		return "", err
	}

	return slices.MinFunc(accounts, func(a, b Account) int {
		return cmp.Or(cmp.Compare(len(shoots[a.Name]), len(shoots[b.Name])), cmp.Compare(uses[a.Name], uses[b.Name]), cmp.Compare(a.Name, b.Name))
	}).Name, nil
}

// byName sorts accounts by name, because the API server lists them in an arbitrary order.
func byName(accounts []Account) {
	slices.SortFunc(accounts, func(a, b Account) int { return cmp.Compare(a.Name, b.Name) })
}
