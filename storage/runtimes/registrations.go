package runtimes

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// Registration is the intent to register an ordered runtime in Director. The row is stored before the call to Director. It is
// removed once the caretaker has made sure that Director does not keep a registration for a runtime that does not exist.
type Registration struct {
	Tenant string `db:"tenant"`
	// Label is the value of the Director label that identifies the order, see registration.LabelOrder. It is the same for all
	// attempts to carry out the order.
	Label string `db:"label"`
	// RuntimeID and OperationID are empty until the order is accepted.
	RuntimeID   string `db:"runtime_id"`
	OperationID string `db:"operation_id"`
	// HeldUntil is when the caretaker's current hold on the registration ends. It is zero if there is no hold. It also identifies the
	// hold.
	HeldUntil storage.Time `db:"held_until"`
}

const registrationColumns = `tenant, label, runtime_id, operation_id, held_until`

// IntendRegistration records that the order is about to be registered. It reports false while the caretaker holds the
// registration of an earlier attempt for cleanup. The caller must then retry later.
func (s *Store) IntendRegistration(ctx context.Context, tenant, label string, now time.Time) (bool, error) {
	touched, err := storage.Select[string](ctx, s.db.Writer(), `INSERT INTO registrations
		(tenant, label, runtime_id, operation_id, failure_told, touched_at) VALUES (?, ?, '', '', FALSE, ?)
		ON CONFLICT (tenant, label) DO UPDATE SET touched_at = excluded.touched_at
		WHERE registrations.held_until IS NULL OR registrations.held_until < excluded.touched_at
		RETURNING label`, tenant, label, storage.At(now))

	return len(touched) == 1, failure.While(err, "recording the intent to register a runtime")
}

// AcceptRegistration records the runtime and the operation of the accepted order, in the caller's transaction. If the caretaker
// holds the registration at that moment, the hold becomes invalid, and SettleRegistration then has no effect.
func (s *Store) AcceptRegistration(ctx context.Context, tx storage.Tx, registration Registration, now time.Time) error {
	_, err := storage.Exec(ctx, tx, `INSERT INTO registrations
		(tenant, label, runtime_id, operation_id, failure_told, touched_at) VALUES (?, ?, ?, ?, FALSE, ?)
		ON CONFLICT (tenant, label) DO UPDATE SET runtime_id = excluded.runtime_id, operation_id = excluded.operation_id,
			failure_told = FALSE, touched_at = excluded.touched_at, held_until = NULL`,
		registration.Tenant, registration.Label, registration.RuntimeID, registration.OperationID, storage.At(now))

	return failure.While(err, "recording the registration of runtime %s", registration.RuntimeID)
}

// UnreportedFailures returns at most limit registrations whose operations have failed, if the failures have not been reported to
// Director.
func (s *Store) UnreportedFailures(ctx context.Context, limit int) ([]Registration, error) {
	unreported, err := storage.Select[Registration](ctx, s.db.Reader(), `SELECT `+registrationColumns+` FROM registrations
		WHERE NOT failure_told AND EXISTS (SELECT 1 FROM operations WHERE operations.id = operation_id AND state = 'failed')
		LIMIT ?`, limit)

	return unreported, failure.While(err, "reading the failures that must be reported to Director")
}

// FailureReported records that the failure of the registration's operation was reported to Director. It changes nothing if a newer
// operation has taken over the order.
func (s *Store) FailureReported(ctx context.Context, registration Registration) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `UPDATE registrations SET failure_told = TRUE
		WHERE tenant = ? AND label = ? AND operation_id = ?`,
		registration.Tenant, registration.Label, registration.OperationID)

	return failure.While(err, "recording that the failure of runtime %s was reported to Director", registration.RuntimeID)
}

// HoldRegistration reserves a registration for the caller until the time until, and returns it. A registration qualifies if it
// has no hold, if IntendRegistration or AcceptRegistration last changed it earlier than before, and if its operation has ended or
// does not exist. If the operation has failed, the failure must have been reported to Director. HoldRegistration chooses the
// registration that was changed longest ago. If no registration qualifies, it returns storage.ErrNotFound.
func (s *Store) HoldRegistration(ctx context.Context, before, now, until time.Time) (Registration, error) {
	held, err := storage.Get[Registration](ctx, s.db.Writer(), `UPDATE registrations SET held_until = ?
		WHERE (tenant, label) IN (
			SELECT tenant, label FROM registrations WHERE touched_at < ? AND (held_until IS NULL OR held_until < ?)
			AND NOT EXISTS (SELECT 1 FROM operations WHERE operations.id = registrations.operation_id
				AND (finished_at IS NULL OR state = 'failed' AND NOT failure_told))
			ORDER BY touched_at LIMIT 1)
		AND (held_until IS NULL OR held_until < ?)
		RETURNING `+registrationColumns, storage.At(until), storage.At(before), storage.At(now), storage.At(now))

	return held, failure.While(err, "reserving a registration for cleanup")
}

// SettleRegistration removes a registration that the caller has cleaned up in Director, if the hold is still valid.
func (s *Store) SettleRegistration(ctx context.Context, registration Registration) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `DELETE FROM registrations WHERE tenant = ? AND label = ? AND held_until = ?`,
		registration.Tenant, registration.Label, registration.HeldUntil)

	return failure.While(err, "settling a registration")
}
