package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// usedQuota describes the instance that uses up the account's quota for the plan. It returns an empty string if the plan has no
// quota or the account has no other instance of the plan. The description contains the ID of the instance, so that the user can
// delete the instance. It omits the ID if the instance belongs to another platform.
func (a *api) usedQuota(ctx context.Context, tx storage.Tx, plan *catalog.Plan, account, instanceID string) (string, error) {
	if !plan.OnePerAccount() {
		return "", nil
	}

	holder, err := a.Instances.Holder(ctx, tx, instances.Claimed{
		Exclusive: plan.Exclusive(account), GlobalAccountID: account, PlanID: plan.ID, Except: instanceID,
	})
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}

	if err != nil {
		return "", err
	}

	owner, err := a.Instances.Owner(ctx, tx, holder)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", err
	}

	if err == nil && !callerOf(ctx).reaches(owner) {
		return fmt.Sprintf(textQuotaElsewhere, plan.Name), nil
	}

	return fmt.Sprintf(textQuota, plan.Name, holder), nil
}

// checkQuota returns an error of kind failure.Quota if the plan allows one instance per account and the account already has
// another one.
func (a *api) checkQuota(ctx context.Context, tx storage.Tx, plan *catalog.Plan, account, instanceID string) error {
	used, err := a.usedQuota(ctx, tx, plan, account, instanceID)
	if err != nil || used == "" {
		return err
	}

	return failure.New(failure.Quota, "%s", used)
}

// quotaRefusal converts a quota.ExceededError to an error response, and returns other errors unchanged.
func quotaRefusal(err error) error {
	if exceeded, is := errors.AsType[*quota.ExceededError](err); is {
		return unprocessable(codeQuota, exceeded.Error())
	}

	return err
}
