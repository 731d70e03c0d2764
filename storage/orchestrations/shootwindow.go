package orchestrations

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// ShootWindows returns the stored maintenance windows of Shoots, keyed by instance ID. Instances without a known window are
// missing from the result.
func (s *Store) ShootWindows(ctx context.Context, tx storage.Tx, instanceIDs []string) (map[string]fleet.WindowTimes, error) {
	windows := map[string]fleet.WindowTimes{}
	if len(instanceIDs) == 0 {
		return windows, nil
	}

	rows, err := storage.Select[struct {
		InstanceID string `db:"instance_id"`
		Begin      string `db:"window_begin"`
		End        string `db:"window_end"`
	}](ctx, tx, `SELECT instance_id, window_begin, window_end FROM shoot_windows WHERE instance_id IN (?) AND window_begin <> ''`, instanceIDs)

	for _, row := range rows {
		windows[row.InstanceID] = fleet.WindowTimes{Begin: row.Begin, End: row.End}
	}

	return windows, failure.While(err, "reading the maintenance windows of Shoots")
}

// SetShootWindow stores the maintenance window of an instance's Shoot and the time of the next refresh. The window is empty if the
// Shoot has none.
func (s *Store) SetShootWindow(ctx context.Context, instanceID string, window fleet.WindowTimes, due time.Time) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `INSERT INTO shoot_windows (instance_id, window_begin, window_end, due_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (instance_id) DO UPDATE SET window_begin = excluded.window_begin, window_end = excluded.window_end, due_at = excluded.due_at`,
		instanceID, window.Begin, window.End, storage.At(due))

	return failure.While(err, "storing the maintenance window of instance %s", instanceID)
}

// AddShootWindows examines a page of instances, which starts after the given instance ID. For each of them that has a runtime in
// a Shoot but no row, it adds an empty row that is due at the given time. The result is as described for storage.Missing.AddPage.
func (s *Store) AddShootWindows(ctx context.Context, due time.Time, after string) (next string, err error) {
	return storage.Missing{
		Table: "shoot_windows", Key: "instance_id", Condition: `runtime_id <> '' AND provider <> ''`,
		Add: func(ctx context.Context, tx storage.Tx, instanceID string) error {
			_, err := storage.Exec(ctx, tx, `INSERT INTO shoot_windows (instance_id, window_begin, window_end, due_at) VALUES (?, '', '', ?)
				ON CONFLICT (instance_id) DO NOTHING`, instanceID, storage.At(due))

			return failure.While(err, "adding the maintenance window of instance %s", instanceID)
		},
	}.AddPage(ctx, s.db, after)
}

// DueWindow is a maintenance window that is due for a refresh.
type DueWindow struct {
	InstanceID string       `db:"instance_id"`
	At         storage.Time `db:"due_at"`
}

// DueShootWindows returns at most limit maintenance windows that are due for a refresh at the given time, sorted by due time.
func (s *Store) DueShootWindows(ctx context.Context, now time.Time, limit int) ([]DueWindow, error) {
	due, err := storage.Select[DueWindow](ctx, s.db.Reader(), `SELECT instance_id, due_at FROM shoot_windows WHERE due_at <= ? ORDER BY due_at `+
		storage.Page(limit, 0), storage.At(now))

	return due, failure.While(err, "finding maintenance windows that are due")
}

// PostponeShootWindow sets the time of the window's next refresh. It reports false if another replica has changed the row in the
// meantime.
func (s *Store) PostponeShootWindow(ctx context.Context, due DueWindow, until time.Time) (bool, error) {
	changed, err := storage.Exec(ctx, s.db.Writer(), `UPDATE shoot_windows SET due_at = ? WHERE instance_id = ? AND due_at = ?`,
		storage.At(until), due.InstanceID, due.At)

	return changed == 1, failure.While(err, "postponing the refresh of the maintenance window of instance %s", due.InstanceID)
}

// RemoveShootWindow removes the window of an instance that has no runtime.
func (s *Store) RemoveShootWindow(ctx context.Context, instanceID string) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `DELETE FROM shoot_windows WHERE instance_id = ?
		AND NOT EXISTS (SELECT 1 FROM instances WHERE instances.id = shoot_windows.instance_id AND instances.runtime_id <> '')`, instanceID)

	return failure.While(err, "removing the maintenance window of instance %s", instanceID)
}
