package eventlog

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// StartMaintenance adds an event which reports that an upgrade is about to change its runtime, unless the log already contains
// this event. No trigger can add the event, because no row changes when the maintenance starts. StartMaintenance returns
// process.ErrLeaseLost if the upgrade has lost its lease.
func (s *Store) StartMaintenance(ctx context.Context, upgrade process.Record, now time.Time) error {
	// A single statement checks both tables. With two statements, an event that is published in between, and thus moved from
	// new_events to events, could be missed.
	err := operations.Fenced(ctx, s.db, upgrade, storage.Statement{
		Text: `INSERT INTO new_events (type, object, operation_id, kind, account, happened_at)
			SELECT 'maintenance.started', ?, ?, ?, ?, ? FROM first
			WHERE NOT EXISTS (SELECT 1 FROM new_events WHERE operation_id = ? AND type = 'maintenance.started')
			AND NOT EXISTS (SELECT 1 FROM events WHERE operation_id = ? AND type = 'maintenance.started')`,
		Args: []any{upgrade.InstanceID, upgrade.ID, upgrade.Kind, upgrade.Tenant, storage.At(now), upgrade.ID, upgrade.ID},
	})

	return failure.While(err, "recording that the maintenance has started for operation %s", upgrade.ID)
}
