package runtimes

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// Registration is what an order may have registered in Director. Its row is there before anything is registered, and until it is clear
// that nothing is left there that no runtime stands for.
type Registration struct {
	Tenant string
	// Label is the value of the label that all tries of the order register with.
	Label string
	// RuntimeID and OperationID are empty until the order is accepted.
	RuntimeID   string
	OperationID string
	// HeldUntil is how long the row is kept from being used by others; it names the hold.
	HeldUntil time.Time
}

// registrationRow is a registration as the table has it.
type registrationRow struct {
	Tenant      string       `db:"tenant"`
	Label       string       `db:"label"`
	RuntimeID   string       `db:"runtime_id"`
	OperationID string       `db:"operation_id"`
	HeldUntil   storage.Time `db:"held_until"`
}

const registrationColumns = `tenant, label, runtime_id, operation_id, held_until`

// IntendRegistration records that the order is about to be registered. It reports false when what an earlier try has left is being
// removed at this moment.
func (s *Store) IntendRegistration(ctx context.Context, tenant, label string, now time.Time) (bool, error) {
	touched, err := storage.Select[string](ctx, s.db.Writer(), `INSERT INTO registrations
		(tenant, label, runtime_id, operation_id, failure_told, touched_at) VALUES (?, ?, '', '', FALSE, ?)
		ON CONFLICT (tenant, label) DO UPDATE SET touched_at = excluded.touched_at
		WHERE registrations.held_until IS NULL OR registrations.held_until < excluded.touched_at
		RETURNING label`, tenant, label, storage.At(now))
	if err != nil {
		return false, fmt.Errorf("recording that a runtime is about to be registered: %w", err)
	}

	return len(touched) == 1, nil
}

// AcceptRegistration records, inside the caller's transaction, which runtime and operation the order was accepted as. Whoever holds the
// registration at that moment does not end it.
func (s *Store) AcceptRegistration(ctx context.Context, tx storage.Tx, registration Registration, now time.Time) error {
	if _, err := storage.Exec(ctx, tx, `INSERT INTO registrations
		(tenant, label, runtime_id, operation_id, failure_told, touched_at) VALUES (?, ?, ?, ?, FALSE, ?)
		ON CONFLICT (tenant, label) DO UPDATE SET runtime_id = excluded.runtime_id, operation_id = excluded.operation_id,
			failure_told = FALSE, touched_at = excluded.touched_at, held_until = NULL`,
		registration.Tenant, registration.Label, registration.RuntimeID, registration.OperationID, storage.At(now)); err != nil {
		return fmt.Errorf("recording the registration of runtime %s: %w", registration.RuntimeID, err)
	}

	return nil
}

// UntoldFailures returns registrations whose operation has failed, which Director has not been told.
func (s *Store) UntoldFailures(ctx context.Context, limit int) ([]Registration, error) {
	rows, err := storage.Select[registrationRow](ctx, s.db.Reader(), `SELECT `+registrationColumns+` FROM registrations
		WHERE NOT failure_told AND EXISTS (SELECT 1 FROM operations WHERE operations.id = operation_id AND state = 'failed')
		LIMIT ?`, limit)
	if err != nil {
		return nil, fmt.Errorf("reading which failures Director has not been told: %w", err)
	}

	return registrationsOf(rows), nil
}

// FailureTold records that Director knows of the failure, unless the order is carried out anew meanwhile.
func (s *Store) FailureTold(ctx context.Context, registration Registration) error {
	if _, err := storage.Exec(ctx, s.db.Writer(), `UPDATE registrations SET failure_told = TRUE
		WHERE tenant = ? AND label = ? AND operation_id = ?`,
		registration.Tenant, registration.Label, registration.OperationID); err != nil {
		return fmt.Errorf("recording what Director was told of runtime %s: %w", registration.RuntimeID, err)
	}

	return nil
}

// HoldRegistration takes the oldest registration that has not been touched since before, and of which nothing more is to be told: its
// operation has ended, or there is none. It is the caller's until the end of the hold. Without such a one it returns storage.ErrNotFound.
func (s *Store) HoldRegistration(ctx context.Context, before, now, until time.Time) (Registration, error) {
	row, err := storage.Get[registrationRow](ctx, s.db.Writer(), `UPDATE registrations SET held_until = ?
		WHERE (tenant, label) IN (
			SELECT tenant, label FROM registrations WHERE touched_at < ? AND (held_until IS NULL OR held_until < ?)
			AND NOT EXISTS (SELECT 1 FROM operations WHERE operations.id = registrations.operation_id
				AND (finished_at IS NULL OR state = 'failed' AND NOT failure_told))
			ORDER BY touched_at LIMIT 1)
		AND (held_until IS NULL OR held_until < ?)
		RETURNING `+registrationColumns, storage.At(until), storage.At(before), storage.At(now), storage.At(now))
	if err != nil {
		return Registration{}, fmt.Errorf("looking for registrations to settle: %w", err)
	}

	return registrationsOf([]registrationRow{row})[0], nil
}

// SettleRegistration ends a registration that the caller holds.
func (s *Store) SettleRegistration(ctx context.Context, registration Registration) error {
	if _, err := storage.Exec(ctx, s.db.Writer(), `DELETE FROM registrations WHERE tenant = ? AND label = ? AND held_until = ?`,
		registration.Tenant, registration.Label, storage.At(registration.HeldUntil)); err != nil {
		return fmt.Errorf("settling a registration: %w", err)
	}

	return nil
}

func registrationsOf(rows []registrationRow) []Registration {
	registrations := make([]Registration, 0, len(rows))
	for _, row := range rows {
		registrations = append(registrations, Registration{
			Tenant: row.Tenant, Label: row.Label, RuntimeID: row.RuntimeID, OperationID: row.OperationID, HeldUntil: row.HeldUntil.Time,
		})
	}

	return registrations
}
