package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// exclusive returns the value of Instance.Exclusive: the plan and the account if the plan allows one instance per
// account, and otherwise an empty string. A unique index on this value rejects a second instance that a concurrent
// request stores after the check of the quota.
func exclusive(plan *catalog.Plan, account string) string {
	if !plan.OnePerAccount() {
		return ""
	}

	return plan.ID + ":" + account
}

// quotaHolder returns the ID of the instance that uses up the account's quota of the plan. It returns an empty
// string if the plan has no quota or the account has no other instance of the plan.
func (a *api) quotaHolder(ctx context.Context, tx storage.Tx, plan *catalog.Plan, account, instanceID string) (string, error) {
	if !plan.OnePerAccount() {
		return "", nil
	}

	id, err := a.Instances.Holder(ctx, tx, instances.Claimed{
		Exclusive: exclusive(plan, account), GlobalAccountID: account, PlanID: plan.ID, Except: instanceID,
	})
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}

	return id, err
}

// checkQuota returns an error of kind quota if the plan allows one instance per account and the account has another
// one.
func (a *api) checkQuota(ctx context.Context, tx storage.Tx, plan *catalog.Plan, account, instanceID string) error {
	holder, err := a.quotaHolder(ctx, tx, plan, account, instanceID)
	if err != nil || holder == "" {
		return err
	}

	return failure.New(failure.Quota, "%s", quotaText(plan, holder))
}

// quotaText describes the exhausted quota and names the instance that uses it, so that the owner can delete it.
func quotaText(plan *catalog.Plan, holder string) string {
	return fmt.Sprintf("An account may have only one instance of plan %s, and this account already has instance %s. Delete that instance first.", plan.Name, holder)
}
