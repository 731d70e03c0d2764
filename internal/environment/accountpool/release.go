package accountpool

import (
	"context"
	"errors"
	"slices"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// ErrInUse reports that the cluster of the instance still exists and uses the account.
var ErrInUse = errors.New("the cluster still uses the account")

// Release ends the instance's use of its account. shootName is the name of the instance's Shoot. The error wraps ErrInUse while
// this Shoot exists.
//
// If no other instance of the tenant uses the account and no Shoot refers to it, Release marks the account as dirty: it needs a
// cleanup before another tenant can claim it. If unknown Shoots use the account, the tenant keeps it. Release returns nil if the
// instance uses no account.
func (p Pool) Release(ctx context.Context, instanceID, shootName string) error {
	use, uses, err := p.Claims.Use(ctx, instanceID)
	if err != nil || !uses {
		return err
	}

	if use.Account != "" {
		shoots, err := p.Garden.Shoots(ctx)
		if err != nil {
			return err
		}

		if slices.Contains(shoots[use.Account], shootName) {
			return ErrInUse
		}
	}

	if use.Shared {
		return p.Claims.Leave(ctx, instanceID)
	}

	return p.release(ctx, instanceID, use.Key)
}

// release ends the instance's use of the claim with the given key, and removes the claim if no other instance uses it. If
// instanceID is empty, release only removes the claim.
func (p Pool) release(ctx context.Context, instanceID string, key Key) error {
	claim, last, err := p.Claims.BeginRelease(ctx, instanceID, key)
	if err != nil || !last {
		return err
	}

	// From here on, no instance can join the claim, so no further Shoots of the broker can appear.
	keep, err := p.markDirty(ctx, claim)
	if err != nil {
		return err
	}

	return p.Claims.EndRelease(ctx, instanceID, claim, keep)
}

// markDirty marks the claim's account as dirty, unless the account never got the tenant's label. If Shoots use the account,
// markDirty changes nothing and returns true.
func (p Pool) markDirty(ctx context.Context, claim Claim) (inUse bool, _ error) {
	if claim.Account == "" {
		return false, nil
	}

	shoots, err := p.Garden.Shoots(ctx)
	if err != nil || len(shoots[claim.Account]) > 0 {
		return err == nil, err
	}

	account, err := p.Garden.Account(ctx, claim.Account)

	switch {
	case failure.Is(err, failure.NotFound):
		return false, nil
	case err != nil:
		return false, err
	case account.free():
		// A replica that was frozen may still try to write the tenant's label. Touch makes that write fail; see Pool.confirm.
		return false, retryConflict(p.Garden.Touch(ctx, account))
	case account.Dirty, account.Internal, account.Shared, account.Tenant != claim.Tenant:
		return false, nil
	}

	account.Dirty = true

	return false, retryConflict(p.Garden.SetLabels(ctx, account))
}

// retryConflict converts an error of kind Conflict or NotFound to one of kind Transient. Such an error means that the account has
// changed since it was read; a retry reads it again.
func retryConflict(err error) error {
	if failure.Is(err, failure.Conflict) || failure.Is(err, failure.NotFound) {
		return failure.Wrap(failure.Transient, err, "the account has changed in the meantime").
			WithReason(failure.ReasonConflict, failure.ComponentGardenerClient)
	}

	return err
}

// Sweep completes releases that were interrupted or skipped: it releases the accounts of instances that no longer exist, and
// removes the claims that no instance uses. It continues after errors and returns all of them.
func (p Pool) Sweep(ctx context.Context) error {
	instances, _, err := p.Claims.Abandoned(ctx)
	if err != nil {
		return err
	}

	var errs []error

	for _, id := range instances {
		errs = append(errs, p.abandon(ctx, id))
	}

	_, claims, err := p.Claims.Abandoned(ctx)
	if err != nil || len(claims) == 0 {
		return errors.Join(append(errs, err)...)
	}

	shoots, err := p.Garden.Shoots(ctx)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}

	for _, claim := range claims {
		if claim.Releasing || len(shoots[claim.Account]) == 0 {
			errs = append(errs, p.release(ctx, "", claim.Key))
		}
	}

	return errors.Join(errs...)
}

// abandon ends the account use of an instance that no longer exists.
func (p Pool) abandon(ctx context.Context, instanceID string) error {
	use, uses, err := p.Claims.Use(ctx, instanceID)

	switch {
	case err != nil || !uses:
		return err
	case use.Shared:
		return p.Claims.Leave(ctx, instanceID)
	default:
		return p.release(ctx, instanceID, use.Key)
	}
}
