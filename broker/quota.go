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

// exclusive is what no two instances share: the account and the plan, where an account may have one instance of the plan. Else it is
// empty. The database keeps it unique, so that of requests at the same moment one wins.
func exclusive(plan *catalog.Plan, account string) string {
	if !plan.OnePerAccount() {
		return ""
	}

	return plan.ID + ":" + account
}

// rivalOf returns the id of the instance that keeps another one from having the plan in the account, or an empty text.
func (a *api) rivalOf(ctx context.Context, tx storage.Tx, plan *catalog.Plan, account, instanceID string) (string, error) {
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

// checkQuota refuses an instance for which the account has no quota left.
func (a *api) checkQuota(ctx context.Context, tx storage.Tx, plan *catalog.Plan, account, instanceID string) error {
	rival, err := a.rivalOf(ctx, tx, plan, account, instanceID)
	if err != nil || rival == "" {
		return err
	}

	return failure.New(failure.Quota, "%s", quotaText(plan, rival))
}

func quotaText(plan *catalog.Plan, rival string) string {
	return fmt.Sprintf("An account may have one instance of plan %s, and this one has %s. Delete that first.", plan.Name, rival)
}
