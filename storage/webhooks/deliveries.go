package webhooks

import (
	"context"
	"errors"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
)

// errLeaseLost rolls the transaction back if the replica has lost the webhook's lease.
var errLeaseLost = errors.New("another replica delivers")

// Delivery is an event that the webhook's receiver has not confirmed.
type Delivery struct {
	WebhookID string
	Event     eventlog.Event
	// Attempts is the number of delivery attempts that have started. FirstAt is when the first of them started.
	Attempts int
	FirstAt  time.Time
	// Dead is true if the delivery is a dead letter, because its last permitted attempt has failed. Otherwise, NextAt is the time of
	// the next attempt.
	Dead   bool
	NextAt time.Time
	// Status and Error describe the result of the last attempt: the HTTP status, and the error if there was one.
	Status int
	Error  string
}

// deliveryRow is a row of webhook_deliveries with the columns of its event.
type deliveryRow struct {
	eventlog.Row

	Attempts int          `db:"attempts"`
	FirstAt  storage.Time `db:"first_at"`
	NextAt   storage.Time `db:"next_at"`
	Dead     bool         `db:"dead"`
	Status   int          `db:"status"`
	Error    string       `db:"error"`
}

const selectDeliveries = `SELECT attempts, first_at, next_at, dead, status, error, ` + eventlog.JoinedColumns + `
	FROM webhook_deliveries JOIN events ON events.position = webhook_deliveries.position `

func deliveries(webhookID string, rows []deliveryRow) []Delivery {
	all := make([]Delivery, 0, len(rows))
	for _, row := range rows {
		all = append(all, Delivery{
			WebhookID: webhookID, Event: row.Event(), Attempts: row.Attempts, FirstAt: row.FirstAt.Time, NextAt: row.NextAt.Time, Dead: row.Dead,
			Status: row.Status, Error: row.Error,
		})
	}

	return all
}

// Hold takes the lease on a webhook for the owner, or renews it. It reports false if another replica has the lease, or if the
// webhook was deleted or disabled.
func (s *Store) Hold(ctx context.Context, id, owner string, now, until time.Time) (bool, error) {
	held, err := storage.Exec(ctx, s.db.Writer(), `UPDATE webhooks SET lease_owner = ?, lease_until = ?
		WHERE id = ? AND disabled_at IS NULL AND (lease_owner = ? OR lease_until IS NULL OR lease_until <= ?)`,
		owner, storage.At(until), id, owner, storage.At(now))

	return held == 1, failure.While(err, "taking the lease on webhook %s", id)
}

// ReturnLease releases the owner's lease on a webhook, so that another replica can take it immediately.
func (s *Store) ReturnLease(ctx context.Context, id, owner string) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `UPDATE webhooks SET lease_until = NULL WHERE id = ? AND lease_owner = ?`, id, owner)

	return failure.While(err, "releasing the lease on webhook %s", id)
}

// Count returns the number of the webhook's dead letters or, if dead is false, of its pending deliveries. If there are more than
// limit, it returns limit.
func (s *Store) Count(ctx context.Context, id string, dead bool, limit int) (int, error) {
	count, err := storage.Get[int](ctx, s.db.Reader(), `SELECT count(*) FROM (
		SELECT 1 FROM webhook_deliveries WHERE webhook_id = ? AND dead = ? `+storage.Page(limit, 0)+`) AS counted`, id, dead)

	return count, failure.While(err, "counting the deliveries of webhook %s", id)
}

// Add adds deliveries of the events, and changes the stored position of the webhook from webhook.Position to last. If the owner
// has lost the lease, or if the stored position is not webhook.Position, Add changes nothing and reports false. If retention has
// removed events after the stored position, Add sets MissedAt.
func (s *Store) Add(ctx context.Context, webhook Webhook, owner string, events []eventlog.Event, last int64, now time.Time) (bool, error) {
	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		moved, err := storage.Exec(ctx, tx, `UPDATE webhooks SET position = ?, missed_at = CASE
				WHEN position < (SELECT removed FROM events_head WHERE id = 1) THEN ? ELSE missed_at END
			WHERE id = ? AND position = ? AND lease_owner = ?`,
			last, storage.At(now), webhook.ID, webhook.Position, owner)
		if err == nil && moved == 0 {
			err = errLeaseLost
		}

		if err != nil {
			return err
		}

		for _, event := range events {
			// The INSERT selects from events, because the event may have been erased since it was read.
			if _, err := storage.Exec(ctx, tx, `INSERT INTO webhook_deliveries (webhook_id, position, subject, dead, attempts, next_at, status, error)
				SELECT ?, position, ?, FALSE, 0, ?, 0, '' FROM events WHERE position = ?`,
				webhook.ID, event.Subject(), storage.At(now), event.Position); err != nil {
				return err
			}
		}

		return nil
	})
	if errors.Is(err, errLeaseLost) {
		return false, nil
	}

	return err == nil, failure.While(err, "adding deliveries of webhook %s", webhook.ID)
}

// Due returns at most limit deliveries that are due, sorted by due time. For each subject, it returns only the earliest pending
// delivery.
func (s *Store) Due(ctx context.Context, id string, now time.Time, limit int) ([]Delivery, error) {
	rows, err := storage.Select[deliveryRow](ctx, s.db.Writer(), selectDeliveries+`WHERE webhook_id = ? AND NOT dead AND next_at <= ? AND NOT EXISTS (
			SELECT 1 FROM webhook_deliveries AS earlier WHERE earlier.webhook_id = webhook_deliveries.webhook_id AND NOT earlier.dead
			AND earlier.subject = webhook_deliveries.subject AND earlier.position < webhook_deliveries.position)
		ORDER BY next_at, events.position `+storage.Page(limit, 0), id, storage.At(now))

	return deliveries(id, rows), failure.While(err, "finding deliveries of webhook %s", id)
}

// Attempt records that a delivery attempt has started, and returns the updated delivery.
func (s *Store) Attempt(ctx context.Context, delivery Delivery, now time.Time) (Delivery, error) {
	delivery.Attempts++
	if delivery.FirstAt.IsZero() {
		delivery.FirstAt = now
	}

	_, err := storage.Exec(ctx, s.db.Writer(), `UPDATE webhook_deliveries SET attempts = ?, first_at = ? WHERE webhook_id = ? AND position = ?`,
		delivery.Attempts, storage.At(delivery.FirstAt), delivery.WebhookID, delivery.Event.Position)

	return delivery, failure.While(err, "recording an attempt of webhook %s", delivery.WebhookID)
}

// Fail records the result of a failed attempt. The next attempt is at NextAt, unless the delivery is a dead letter.
func (s *Store) Fail(ctx context.Context, delivery Delivery) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `UPDATE webhook_deliveries SET dead = ?, next_at = ?, status = ?, error = ?
		WHERE webhook_id = ? AND position = ?`,
		delivery.Dead, storage.At(delivery.NextAt), delivery.Status, delivery.Error, delivery.WebhookID, delivery.Event.Position)

	return failure.While(err, "recording a failure of webhook %s", delivery.WebhookID)
}

// Deliver removes a delivery that the receiver has confirmed. It reports false if the delivery no longer exists.
func (s *Store) Deliver(ctx context.Context, delivery Delivery, now time.Time) (bool, error) {
	var removed int64

	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		var err error
		if removed, err = storage.Exec(ctx, tx, `DELETE FROM webhook_deliveries WHERE webhook_id = ? AND position = ?`,
			delivery.WebhookID, delivery.Event.Position); err != nil {
			return err
		}

		_, err = storage.Exec(ctx, tx, `UPDATE webhooks SET delivered_at = ? WHERE id = ?`, storage.At(now), delivery.WebhookID)

		return err
	})

	return removed == 1, failure.While(err, "recording a delivery of webhook %s", delivery.WebhookID)
}

// Undelivered returns at most limit of the webhook's dead letters or, if dead is false, of its pending deliveries. It returns
// those whose events have positions greater than after, in the order of the positions.
func (s *Store) Undelivered(ctx context.Context, id string, dead bool, after int64, limit int) ([]Delivery, error) {
	rows, err := storage.Select[deliveryRow](ctx, s.db.Reader(), selectDeliveries+`WHERE webhook_id = ? AND dead = ? AND webhook_deliveries.position > ?
		ORDER BY webhook_deliveries.position `+storage.Page(limit, 0), id, dead, after)

	return deliveries(id, rows), failure.While(err, "listing deliveries of webhook %s", id)
}

// Replayed selects the deliveries that Replay makes due.
type Replayed struct {
	// Position selects the delivery of the event at this position, whether or not it is a dead letter. If Position is 0, all dead
	// letters are selected or, if Pending is set, all pending deliveries.
	Position int64
	Pending  bool
}

// Replay makes deliveries of the webhook due now, and returns their number. Dead letters become pending again, with the full
// number of attempts. Pending deliveries keep their numbers of attempts, and still wait for earlier deliveries with the same
// subject.
func (s *Store) Replay(ctx context.Context, tx storage.Tx, id string, which Replayed, now time.Time) (int, error) {
	var conditions storage.Conditions

	conditions.Add(true, "webhook_id = ?", id)
	conditions.Add(which.Position > 0, "position = ?", which.Position)
	conditions.Add(which.Position == 0, "dead = ?", !which.Pending)
	where, args := conditions.Where()

	replayed, err := storage.Exec(ctx, tx, `UPDATE webhook_deliveries SET attempts = CASE WHEN dead THEN 0 ELSE attempts END,
		first_at = CASE WHEN dead THEN NULL ELSE first_at END, dead = FALSE, next_at = ?`+where, append([]any{storage.At(now)}, args...)...)

	return int(replayed), failure.While(err, "replaying deliveries of webhook %s", id)
}

// Backlog summarizes the deliveries of all webhooks.
type Backlog struct {
	Pending int `db:"pending"`
	Dead    int `db:"dead"`
	// Disabled is the number of disabled webhooks.
	Disabled int `db:"disabled"`
	// Behind is the number of events that the enabled webhook with the lowest position has not processed yet. Events that were
	// removed or erased do not count.
	Behind int64 `db:"behind"`
	// Oldest is the time of the oldest event with a pending delivery to an enabled webhook, or zero.
	Oldest storage.Time `db:"oldest"`
}

// Backlog counts the deliveries of all webhooks.
func (s *Store) Backlog(ctx context.Context) (Backlog, error) {
	backlog, err := storage.Get[Backlog](ctx, s.db.Reader(), `SELECT
		(SELECT count(*) FROM webhook_deliveries WHERE NOT dead) AS pending, (SELECT count(*) FROM webhook_deliveries WHERE dead) AS dead,
		(SELECT count(*) FROM webhooks WHERE disabled_at IS NOT NULL) AS disabled,
		(SELECT count(*) FROM events WHERE position > (SELECT min(position) FROM webhooks WHERE disabled_at IS NULL)) AS behind,
		(SELECT happened_at FROM events WHERE position = (SELECT min(webhook_deliveries.position) FROM webhook_deliveries
			JOIN webhooks ON webhooks.id = webhook_id WHERE NOT dead AND disabled_at IS NULL)) AS oldest`)

	return backlog, failure.While(err, "counting the deliveries of webhooks")
}
