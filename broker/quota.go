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

// exclusive returns the value of Instance.Exclusive: plan and account if an account may have one instance of
// the plan, else an empty text. The check of the quota can miss an instance that a concurrent request is about
// to store. The unique index on the value then rejects the second instance.
func exclusive(plan *catalog.Plan, account string) string {
	if !plan.OnePerAccount() {
		return ""
	}

	return plan.ID + ":" + account
}

// quotaHolder returns the ID of the account's other instance of a plan that allows one, or an empty text.
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

// checkQuota rejects an instance beyond the quota of the account with an error of kind quota.
func (a *api) checkQuota(ctx context.Context, tx storage.Tx, plan *catalog.Plan, account, instanceID string) error {
	holder, err := a.quotaHolder(ctx, tx, plan, account, instanceID)
	if err != nil || holder == "" {
		return err
	}

	return failure.New(failure.Quota, "%s", quotaText(plan, holder))
}

// quotaText names the instance that uses up the quota, so that its owner can delete it.
func quotaText(plan *catalog.Plan, holder string) string {
	return fmt.Sprintf("An account may have one instance of plan %s, and this account has %s. Delete that one first.", plan.Name, holder)
}
