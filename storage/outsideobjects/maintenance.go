package outsideobjects

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// inMaintenance is the SQL condition for records of evaluations in maintenance, see environment.KindMaintenance. The index on
	// these records has the same condition.
	inMaintenance = `kind IN ('internal evaluation in maintenance', 'external evaluation in maintenance')`
	// notUpgrading is the SQL condition for records of instances that have no unfinished operation of the given kinds.
	notUpgrading = `NOT EXISTS (SELECT 1 FROM operations WHERE operations.instance_id = outside_objects.instance_id
		AND operations.kind IN (?) AND operations.finished_at IS NULL)`
)

// Abandoned returns at most limit records of evaluations that an upgrade has left in maintenance: their instances have no
// unfinished upgrade. The records are sorted by instance, and their instance IDs are greater than after.
func (s *Store) Abandoned(ctx context.Context, after string, limit int) ([]environment.OutsideObject, error) {
	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT `+columns+` FROM outside_objects
		WHERE `+inMaintenance+` AND instance_id > ? AND `+notUpgrading+` ORDER BY instance_id, kind LIMIT ?`,
		after, environment.UpgradeKinds(), limit)

	return objects(rows), failure.While(err, "looking for evaluations that an upgrade has left in maintenance")
}

// Drop deletes the record of an abandoned evaluation whose state has been restored, unless another upgrade has begun.
func (s *Store) Drop(ctx context.Context, object environment.OutsideObject) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `DELETE FROM outside_objects WHERE instance_id = ? AND system = ? AND kind = ? AND `+notUpgrading,
		object.InstanceID, object.System, object.Kind, environment.UpgradeKinds())

	return failure.While(err, "removing the record of an evaluation in maintenance for instance %s", object.InstanceID)
}
