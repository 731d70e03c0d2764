package storage

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

const (
	retentionInterval = time.Hour
	// retentionPause is the pause after each full batch, so that other statements are not delayed.
	retentionPause = 50 * time.Millisecond
)

// Retention removes old rows in batches, in the background. Every replica runs it, so Remove must skip rows that another
// replica is removing.
type Retention struct {
	// Name is the name of the lifecycle.Part in logs.
	Name string
	// Rows is the plural noun for the removed rows in log messages, such as "timelines".
	Rows string
	// Remove removes at most limit rows that are too old at the time now, and returns how many it removed.
	Remove func(ctx context.Context, now time.Time, limit int) (int, error)
	// Examine takes the place of Remove if some of the old rows may still be needed. It examines at most limit rows that are too old,
	// removes those that are not needed, and returns how many rows it examined and removed. Later calls of the same sweep must not
	// examine these rows again.
	Examine func(ctx context.Context, now time.Time, limit int) (examined, removed int, err error)
	// Batch is the value of limit for each call of Remove or Examine. Each call is one transaction.
	Batch int
	Clock clock.WithTicker
	Log   logrus.FieldLogger
}

// Part returns a lifecycle.Part that calls Sweep every hour.
func (r Retention) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: r.Name, Every: retentionInterval, Work: r.Sweep, Clock: r.Clock, Log: r.Log}.Part()
}

// Sweep removes all rows that are currently too old. It returns the first error of Remove or Examine. The next sweep continues with the
// remaining rows.
func (r Retention) Sweep(ctx context.Context) error {
	total := 0

	for {
		examined, removed, err := r.batch(ctx)
		if err != nil {
			return err
		}

		total += removed

		if examined < r.Batch {
			break
		}

		if err := lifecycle.Pause(ctx, r.Clock, retentionPause); err != nil {
			return err
		}
	}

	if total > 0 {
		r.Log.WithField("rows", total).Infof("removed %s that exceed the retention period", r.Rows)
	}

	return nil
}

// batch calls Examine. If Examine is nil, it calls Remove, and returns the number of removed rows for both results.
func (r Retention) batch(ctx context.Context) (examined, removed int, err error) {
	if r.Examine != nil {
		return r.Examine(ctx, r.Clock.Now(), r.Batch)
	}

	removed, err = r.Remove(ctx, r.Clock.Now(), r.Batch)

	return removed, removed, err
}
