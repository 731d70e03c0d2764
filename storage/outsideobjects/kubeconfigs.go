package outsideobjects

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// isKubeconfig is the condition of the index on the records of kubeconfigs, see environment.KindKubeconfig.
	isKubeconfig = `kind = 'kubeconfig' AND state = 'created'`
	// whichKubeconfig selects the record of a kubeconfig, unless an operation has changed it or removes the object.
	whichKubeconfig = ` WHERE instance_id = ? AND system = ? AND object_key = ? AND ` + isKubeconfig
)

// DueKubeconfigs returns at most limit records of kubeconfigs that are due for a renewal: first those that were never renewed, then those
// that are due for the longest time.
func (s *Store) DueKubeconfigs(ctx context.Context, now time.Time, limit int) ([]environment.OutsideObject, error) {
	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT `+columns+` FROM outside_objects WHERE `+isKubeconfig+` AND due_at IS NULL `+
		storage.Page(limit, 0))
	if err == nil && len(rows) < limit {
		var later []row

		later, err = storage.Select[row](ctx, s.db.Reader(), `SELECT `+columns+` FROM outside_objects WHERE `+isKubeconfig+` AND due_at <= ?
			ORDER BY due_at `+storage.Page(limit-len(rows), 0), storage.At(now))
		rows = append(rows, later...)
	}

	return objects(rows), failure.While(err, "finding kubeconfigs to renew")
}

// PostponeKubeconfig sets when the kubeconfig is due again. It reports false if the record has changed, or if another replica has postponed
// it.
func (s *Store) PostponeKubeconfig(ctx context.Context, object environment.OutsideObject, now, until time.Time) (bool, error) {
	changed, err := storage.Exec(ctx, s.db.Writer(), `UPDATE outside_objects SET due_at = ?`+whichKubeconfig+` AND (due_at IS NULL OR due_at <= ?)`,
		storage.At(until), object.InstanceID, object.System, object.Key, storage.At(now))

	return changed == 1, failure.While(err, "postponing the kubeconfig of instance %s", object.InstanceID)
}

// RenewedKubeconfig records that the object has a kubeconfig that expires at the given time, and is due again at due. It reports false if
// an operation has changed the record in the meantime.
func (s *Store) RenewedKubeconfig(ctx context.Context, object environment.OutsideObject, due, expires time.Time) (bool, error) {
	changed, err := storage.Exec(ctx, s.db.Writer(), `UPDATE outside_objects SET due_at = ?, expires_at = ?`+whichKubeconfig,
		storage.At(due), storage.At(expires), object.InstanceID, object.System, object.Key)

	return changed == 1, failure.While(err, "recording the kubeconfig of instance %s", object.InstanceID)
}

// CountKubeconfigs returns the number of kubeconfigs, and of those that expire before the given time.
func (s *Store) CountKubeconfigs(ctx context.Context, before time.Time) (total, expiring int, err error) {
	counted, err := storage.Get[struct {
		Total    int `db:"total"`
		Expiring int `db:"expiring"`
	}](ctx, s.db.Reader(), `SELECT count(*) AS total, coalesce(sum(CASE WHEN expires_at <= ? THEN 1 ELSE 0 END), 0) AS expiring
		FROM outside_objects WHERE `+isKubeconfig, storage.At(before))

	return counted.Total, counted.Expiring, failure.While(err, "counting kubeconfigs")
}
