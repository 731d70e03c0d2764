package auditlog

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/lifecycle"
)

const (
	retentionEvery = time.Hour
	// retentionBatch is how many entries are removed in one transaction, with a pause after it that leaves the database to others.
	retentionBatch = 500
	retentionPause = 50 * time.Millisecond
)

// Retention removes entries that are not to be kept any more.
type Retention struct {
	Store *Store
	Clock clock.WithTicker
	Log   logrus.FieldLogger
}

// Part removes them in the background.
func (r Retention) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "audit retention", Every: retentionEvery, Work: r.Sweep, Clock: r.Clock, Log: r.Log}.Part()
}

// Sweep removes what is old now.
func (r Retention) Sweep(ctx context.Context) error {
	total := 0

	for {
		removed, err := r.Store.Remove(ctx, r.Clock.Now(), retentionBatch)
		if err != nil {
			return err
		}

		total += removed

		if removed < retentionBatch {
			break
		}

		if err := lifecycle.Pause(ctx, r.Clock, retentionPause); err != nil {
			return err
		}
	}

	if total > 0 {
		r.Log.WithField("entries", total).Info("entries of the audit trail whose time is over are removed")
	}

	return nil
}
