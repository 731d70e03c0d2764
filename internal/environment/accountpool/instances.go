package accountpool

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
)

// Instances assigns accounts to instances according to the configured rules, and releases them. The steps of the broker's
// processes use it.
type Instances struct {
	Pool  Pool
	Rules Rules
}

// Assign returns the name of the account for the instance. The error is of kind Waiting if no account is free, and of kind
// Permanent if no rule applies to the instance.
func (i Instances) Assign(ctx context.Context, instance environment.Instance) (string, error) {
	request, err := i.Request(instance)
	if err != nil {
		return "", err
	}

	name, err := i.Pool.Assign(ctx, request)
	if errors.Is(err, ErrNoneFree) {
		return "", failure.Wrap(failure.Waiting, err, "no account is free (%s)", request.Selector)
	}

	return name, err
}

// Request returns the request for an instance's account. If only operators in the European Union may access the instance, the
// request is for an account with the same restriction, even if the rule does not require this.
func (i Instances) Request(instance environment.Instance) (Request, error) {
	rule, found := i.Rules.Find(instance.PlanName, instance.PlatformRegion, instance.Region)
	if !found {
		return Request{}, failure.New(failure.Permanent,
			"no rule of the account pool applies to plan %s in platform region %s and region %s: an operator must add one to APP_ACCOUNT_POOL_RULES_FILE",
			instance.PlanName, instance.PlatformRegion, instance.Region)
	}

	selector := rule.Selector(instance.Provider, instance.PlatformRegion, instance.Region)
	selector.EUAccess = selector.EUAccess || instance.Request.Cluster.EUAccess

	return Request{InstanceID: instance.ID, Tenant: tenancy.Label(instance.RuntimeTenant()), Selector: selector}, nil
}

// Release releases the account of the instance. The error is of kind Waiting while the cluster of the instance exists.
func (i Instances) Release(ctx context.Context, instance environment.Instance) error {
	err := i.Pool.Release(ctx, instance.ID, instance.ShootName)
	if errors.Is(err, ErrInUse) {
		return failure.Wrap(failure.Waiting, err, "the cluster %s still uses the account", instance.ShootName)
	}

	return err
}
