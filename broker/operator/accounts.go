package operator

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

// accounts implements operatorserver.Accounts. After the deletion of an instance, the broker keeps only its operations, its audit
// log entries, its events and the records of its objects in other systems. Package operatorserver erases the operations and audit
// log entries, and accounts erases the rest.
type accounts struct {
	instances *instances.Store
	leftovers *leftovers.Store
	objects   *outsideobjects.Store
	eventLog  *eventlog.Store
}

// Key returns the ID, because the broker stores account IDs unchanged.
func (accounts) Key(account string) string { return account }

// Remaining returns at most limit instances that block the erasure of an account: those that belong to it, those that it ordered
// before they moved to another account, and those with leftovers. An erasure would remove the data that the cleanup of a leftover
// needs.
func (a accounts) Remaining(ctx context.Context, tx storage.Tx, account string, limit int) ([]operatorapi.AccountInstance, error) {
	found, err := a.instances.OfAccount(ctx, tx, account, limit)
	if err != nil {
		return nil, err
	}

	left, err := a.leftovers.OfAccount(ctx, tx, account, limit)
	remaining := make([]operatorapi.AccountInstance, 0, len(found)+len(left))

	for _, instance := range found {
		remaining = append(remaining, accountInstance(instance, ""))
	}

	for _, leftover := range left {
		remaining = append(remaining, accountInstance(leftover.Instance, leftover.ID))
	}

	return remaining[:min(len(remaining), limit)], err
}

func accountInstance(instance environment.Instance, leftoverID string) operatorapi.AccountInstance {
	return operatorapi.AccountInstance{
		InstanceID: instance.ID, Name: instance.Name, GlobalAccountID: instance.GlobalAccountID, LeftoverID: leftoverID,
	}
}

// CountErasable counts the account's records of objects in other systems, and its events.
func (a accounts) CountErasable(ctx context.Context, account string) (operatorserver.ErasableRows, error) {
	objects, err := a.objects.CountErasable(ctx, account)
	if err != nil {
		return operatorserver.ErasableRows{}, err
	}

	events, err := a.eventLog.CountErasable(ctx, account)

	return operatorserver.ErasableRows{OutsideObjects: objects, Events: events}, err
}

// Erase removes the account's records of objects in other systems, and its events. It removes all of them at once, and ignores the
// limit.
func (a accounts) Erase(ctx context.Context, tx storage.Tx, account string, _ int) (operatorserver.ErasableRows, error) {
	objects, err := a.objects.Erase(ctx, tx, account)
	if err != nil {
		return operatorserver.ErasableRows{}, err
	}

	events, err := a.eventLog.Erase(ctx, tx, account)

	return operatorserver.ErasableRows{OutsideObjects: objects, Events: events}, err
}
