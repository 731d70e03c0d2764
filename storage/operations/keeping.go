package operations

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/lifecycle"
)

const (
	// retentionEvery is how often old timelines are looked for.
	retentionEvery = time.Hour
	// retentionBatch is how many are removed in one transaction, with a pause after it that leaves the database to others.
	retentionBatch = 50
	retentionPause = 50 * time.Millisecond
)

// Retention removes timelines that have grown old.
type Retention struct {
	Store *Store
	// Keep is for how long a timeline is kept after its operation has ended.
	Keep  time.Duration
	Clock clock.WithTicker
	Log   logrus.FieldLogger
}

// Part removes old timelines in the background.
func (r Retention) Part() lifecycle.Part {
	return lifecycle.Periodic{
		Name: "timeline retention", Every: retentionEvery, Work: r.Sweep, Clock: r.Clock, Log: r.Log,
	}.Part()
}

// Sweep removes the timelines that are old now.
func (r Retention) Sweep(ctx context.Context) error {
	if r.Keep <= 0 {
		return nil // they are kept for ever
	}

	total := 0

	for {
		now := r.Clock.Now()

		removed, err := r.Store.RemoveTimelines(ctx, now.Add(-r.Keep), now, retentionBatch)
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
		r.Log.WithField("operations", total).Infof("timelines of operations that ended more than %s ago are removed", r.Keep)
	}

	return nil
}
