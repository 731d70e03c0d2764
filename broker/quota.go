package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// exclusive is what no two instances share: the account and the plan, where an account may have one instance of the plan. Else it is
// empty. The database keeps it unique, so that of requests at the same moment one wins.
func exclusive(order order) string {
	if !order.plan.OnePerAccount() {
		return ""
	}

	return order.plan.ID + ":" + order.requester.tenant
}

// rivalOf returns the id of the instance that keeps the order from being accepted, or an empty text. The order's own instance is none.
func (a *api) rivalOf(ctx context.Context, order order) (string, error) {
	if !order.plan.OnePerAccount() {
		return "", nil
	}

	id, err := a.Instances.Holder(ctx, instances.Claimed{
		Exclusive: exclusive(order), GlobalAccountID: order.requester.tenant, PlanID: order.plan.ID, Except: order.instanceID,
	})
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}

	return id, err
}

// checkQuota refuses an order for which the account has no quota left.
func (a *api) checkQuota(ctx context.Context, order order) error {
	rival, err := a.rivalOf(ctx, order)
	if err != nil || rival == "" {
		return err
	}

	return failure.New(failure.Quota, "%s", quotaText(order, rival))
}

func quotaText(order order, rival string) string {
	return fmt.Sprintf("An account may have one instance of plan %s, and this one has %s. Delete that first.", order.plan.Name, rival)
}
