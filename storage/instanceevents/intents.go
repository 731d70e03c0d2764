package instanceevents

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// Begin stores the intent to change the instance in another system, in the caller's transaction. The caller must commit this
// transaction before it makes the change, and call End in the transaction that records the event. Like Record, Begin locks the
// instance, and does nothing if the instance does not exist.
func (s *Store) Begin(ctx context.Context, tx storage.Tx, instanceID, system string, now time.Time) error {
	_, err := storage.Exec(ctx, tx, `INSERT INTO instance_event_intents (instance_id, system, began_at)
		SELECT id, ?, ? FROM (SELECT id FROM instances WHERE id = ?`+s.db.ForUpdate()+`) AS present WHERE true
		ON CONFLICT (instance_id, system) DO NOTHING`, system, storage.At(now), instanceID)

	return failure.While(err, "storing the intent to change instance %s", instanceID)
}

// Begun reports whether Begin has stored an intent that End has not removed. The intent may come from the caller or from a
// replica that has since died.
func (s *Store) Begun(ctx context.Context, tx storage.Tx, instanceID, system string) (bool, error) {
	found, err := storage.Select[int](ctx, tx, `SELECT 1 FROM instance_event_intents WHERE instance_id = ? AND system = ?`, instanceID, system)

	return len(found) > 0, failure.While(err, "reading the intent to change instance %s", instanceID)
}

// End removes the intent that Begin stored, if there is one, in the caller's transaction.
func (s *Store) End(ctx context.Context, tx storage.Tx, instanceID, system string) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM instance_event_intents WHERE instance_id = ? AND system = ?`, instanceID, system)

	return failure.While(err, "removing the intent to change instance %s", instanceID)
}
