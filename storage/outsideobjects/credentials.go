package outsideobjects

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// isRenewed is the SQL condition for records of objects that contain a kubeconfig, see environment.Credential. The index on these
	// records has the same condition.
	isRenewed = `kind IN ('kubeconfig', 'cluster') AND state = 'created'`
	// whichObject is the WHERE clause for the record of an object.
	whichObject = ` WHERE instance_id = ? AND system = ? AND kind = ? AND object_key = ?`
	// whichRenewed is like whichObject, but excludes the record if an operation has changed it or is removing the object.
	whichRenewed = whichObject + ` AND ` + isRenewed
)

// Renewal is an attempt by a replica to renew a credential.
type Renewal struct {
	Object environment.OutsideObject
	// Now is the start of the renewal. RetryAt is when the credential is due again if the replica does not finish the renewal.
	Now, RetryAt time.Time
	// Until is a time by which all calls that the renewal makes will have ended. If it is set, the renewal and the instance's
	// operations exclude each other: the renewal does not begin during an operation, and later operations wait until the renewal has
	// ended.
	Until time.Time
}

// Result is the outcome of a renewal.
type Result struct {
	// DueAt is when the credential is due for renewal again. IssuedAt and ExpiresAt describe the new credential. They are zero if the
	// renewal failed.
	DueAt, IssuedAt, ExpiresAt time.Time
	// Problem is the cause of the failure, without secrets. It is empty after a success.
	Problem string
	// Until is the time until which a request that the renewal has sent can still take effect. Operations wait until then. It is zero
	// if there is no such request.
	Until time.Time
}

// DueCredentials returns at most limit records of the given systems whose credentials are due for renewal. Credentials that were
// never renewed come first, followed by those that have been due longest.
func (s *Store) DueCredentials(ctx context.Context, systems []string, now time.Time, limit int) ([]environment.OutsideObject, error) {
	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT `+columns+` FROM outside_objects WHERE `+isRenewed+` AND system IN (?)
		AND due_at IS NULL `+storage.Page(limit, 0), systems)
	if err == nil && len(rows) < limit {
		var later []row

		later, err = storage.Select[row](ctx, s.db.Reader(), `SELECT `+columns+` FROM outside_objects WHERE `+isRenewed+` AND system IN (?)
			AND due_at <= ? ORDER BY due_at `+storage.Page(limit-len(rows), 0), systems, storage.At(now))
		rows = append(rows, later...)
	}

	return objects(rows), failure.While(err, "finding credentials to renew")
}

// BeginRenewal reserves the credential for the caller. It reports false if the record has changed, or if another replica is
// renewing the credential. It also reports false if the renewal must exclude operations and an operation of the instance is
// unfinished. In this case, the credential is due again at RetryAt.
func (s *Store) BeginRenewal(ctx context.Context, renewal Renewal) (bool, error) {
	began, object := false, renewal.Object

	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		// Lock the record first. An operation that the next query does not see yet then waits for this transaction before it reads
		// RenewingUntil.
		due, err := storage.Select[int](ctx, tx, `SELECT 1 FROM outside_objects`+whichRenewed+` AND (due_at IS NULL OR due_at <= ?)`+s.db.ForUpdate(),
			object.InstanceID, object.System, object.Kind, object.Key, storage.At(renewal.Now))
		if err != nil || len(due) == 0 {
			return err
		}

		began = true

		if !renewal.Until.IsZero() {
			unfinished, err := storage.Select[int](ctx, tx, `SELECT 1 FROM operations WHERE instance_id = ? AND finished_at IS NULL LIMIT 1`, object.InstanceID)
			if err != nil {
				return err
			}

			began = len(unfinished) == 0
		}

		until := storage.Time{}
		if began {
			until = storage.At(renewal.Until)
		}

		_, err = storage.Exec(ctx, tx, `UPDATE outside_objects SET due_at = ?, renewing_until = ?`+whichObject,
			storage.At(renewal.RetryAt), until, object.InstanceID, object.System, object.Kind, object.Key)

		return err
	})

	return began && err == nil, failure.While(err, "beginning to renew the credential of instance %s", object.InstanceID)
}

// Reserve extends a renewal in the caller's transaction, so that an operation that removes the object waits until the given time.
// It reports false if such an operation has already begun.
func (s *Store) Reserve(ctx context.Context, tx storage.Tx, object environment.OutsideObject, until time.Time) (bool, error) {
	changed, err := storage.Exec(ctx, tx, `UPDATE outside_objects SET renewing_until = ?`+whichRenewed,
		storage.At(until), object.InstanceID, object.System, object.Kind, object.Key)

	return changed == 1, failure.While(err, "reserving the credential of instance %s", object.InstanceID)
}

// EndRenewal records the result of a renewal in the caller's transaction. Operations that wait for the renewal then continue,
// unless result.Until is set. In that case, they wait until that time. If an operation has changed the record in the meantime,
// EndRenewal records only that the renewal has ended. A request from RequestRenewal that arrived during the renewal stays due, because
// the renewal may have read the instance before the change that caused the request. If the replica was so slow that another renewal
// has begun, EndRenewal keeps the reservation of that renewal.
func (s *Store) EndRenewal(ctx context.Context, tx storage.Tx, renewal Renewal, result Result) error {
	const ownReservation = `renewing_until = CASE WHEN renewing_until = ? THEN ? ELSE renewing_until END`

	object, reserved, until := renewal.Object, storage.At(renewal.Until), storage.At(result.Until)

	changed, err := storage.Exec(ctx, tx, `UPDATE outside_objects SET due_at = CASE WHEN due_at = ? THEN ? ELSE due_at END, problem = ?,
		`+ownReservation+`, issued_at = coalesce(?, issued_at), expires_at = coalesce(?, expires_at)`+whichRenewed,
		storage.At(renewal.RetryAt), storage.At(result.DueAt), result.Problem, reserved, until,
		storage.At(result.IssuedAt), storage.At(result.ExpiresAt), object.InstanceID, object.System, object.Kind, object.Key)
	if err == nil && changed == 1 {
		err = keepConfiguration(ctx, tx, object, result.IssuedAt)
	}

	if err == nil && changed == 0 {
		_, err = storage.Exec(ctx, tx, `UPDATE outside_objects SET `+ownReservation+whichObject,
			reserved, until, object.InstanceID, object.System, object.Kind, object.Key)
	}

	return failure.While(err, "recording the credential of instance %s", object.InstanceID)
}

// RequestRenewal makes the credentials that the given systems have of an instance due for renewal now, except those that are already
// being renewed, in the caller's transaction.
func (s *Store) RequestRenewal(ctx context.Context, tx storage.Tx, instanceID string, systems []string, now time.Time) error {
	_, err := storage.Exec(ctx, tx, `UPDATE outside_objects SET due_at = ? WHERE instance_id = ? AND system IN (?) AND `+isRenewed+
		` AND (due_at IS NULL OR due_at > ?) AND (renewing_until IS NULL OR renewing_until <= ?)`,
		storage.At(now), instanceID, systems, storage.At(now), storage.At(now))

	return failure.While(err, "requesting the renewal of the credentials of instance %s", instanceID)
}

// Credentials returns at most limit records of objects with a credential, sorted by instance and system, starting after the given
// record. If instanceID is not empty, it returns only credentials of this instance.
func (s *Store) Credentials(ctx context.Context, instanceID string, after environment.OutsideObject, limit int) ([]environment.OutsideObject, error) {
	where := storage.Conditions{}
	where.Add(true, isRenewed)
	where.Add(instanceID != "", `instance_id = ?`, instanceID)
	where.Add(after.InstanceID != "", `(instance_id > ? OR instance_id = ? AND system > ?)`, after.InstanceID, after.InstanceID, after.System)
	clause, args := where.Where()

	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT `+columns+` FROM outside_objects`+clause+` ORDER BY instance_id, system `+
		storage.Page(limit, 0), args...)

	return objects(rows), failure.While(err, "listing credentials")
}

// CredentialCount is the number of credentials that a system has.
type CredentialCount struct {
	System string `db:"system"`
	Total  int    `db:"total"`
	// Expiring is the number of those credentials that expire by the time that was passed to CountCredentials.
	Expiring int `db:"expiring"`
}

// CountCredentials returns, for each system, the number of credentials, and how many of them expire by the given time.
func (s *Store) CountCredentials(ctx context.Context, before time.Time) ([]CredentialCount, error) {
	counts, err := storage.Select[CredentialCount](ctx, s.db.Reader(), `SELECT system, count(*) AS total,
		coalesce(sum(CASE WHEN expires_at <= ? THEN 1 ELSE 0 END), 0) AS expiring
		FROM outside_objects WHERE `+isRenewed+` GROUP BY system ORDER BY system`, storage.At(before))

	return counts, failure.While(err, "counting credentials")
}
