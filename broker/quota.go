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

// claim is what an order or an update claims for an instance.
type claim struct {
	plan       *catalog.Plan
	account    string
	instanceID string
}

func (o order) claim() claim {
	return claim{plan: o.plan, account: o.requester.tenant, instanceID: o.instanceID}
}

// rivalOf returns the id of the instance that has what is claimed, or an empty text.
func (a *api) rivalOf(ctx context.Context, claim claim) (string, error) {
	if !claim.plan.OnePerAccount() {
		return "", nil
	}

	id, err := a.Instances.Holder(ctx, instances.Claimed{
		Exclusive: exclusive(claim.plan, claim.account), GlobalAccountID: claim.account, PlanID: claim.plan.ID, Except: claim.instanceID,
	})
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}

	return id, err
}

// checkQuota refuses what the account has no quota left for.
func (a *api) checkQuota(ctx context.Context, claim claim) error {
	rival, err := a.rivalOf(ctx, claim)
	if err != nil || rival == "" {
		return err
	}

	return failure.New(failure.Quota, "%s", quotaText(claim.plan, rival))
}

func quotaText(plan *catalog.Plan, rival string) string {
	return fmt.Sprintf("An account may have one instance of plan %s, and this one has %s. Delete that first.", plan.Name, rival)
}
