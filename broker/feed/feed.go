// Package feed follows what the Provisioner tells of changed operations and makes the broker's operations due that wait for them.
package feed

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

const (
	// wait is how long the Provisioner may hold a request open.
	wait = 20 * time.Second
	// firstPause and longestPause bound the pause after an error.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// askAgain is when a Provisioner without a feed is asked again whether it has one: it may have been replaced.
	askAgain = 5 * time.Minute

	// fallback is how often an operation of the Provisioner is asked for while the feed tells of changes: nothing depends on it.
	fallback = 10 * time.Minute
	// Without a feed the pause grows with the time that has passed: a twentieth of it, within these bounds.
	soonest = time.Second
	latest  = 20 * time.Second
	share   = 20
)

// Provisioner tells of changed operations.
type Provisioner interface {
	Changes(ctx context.Context, after string, wait time.Duration) (provisionerclient.Changes, error)
}

// Waker makes operations due that wait for one of the events.
type Waker interface {
	Wake(ctx context.Context, events []string, now time.Time) (int64, error)
}

// Place keeps where in the feed the broker is. It is shared by all replicas: each passes every change on to all of them.
type Place interface {
	// FeedCursor returns the place that was kept last, or nothing.
	FeedCursor(ctx context.Context) (string, error)
	SaveFeedCursor(ctx context.Context, cursor string) error
}

// Feed follows one Provisioner.
type Feed struct {
	provisioner Provisioner
	waker       Waker
	place       Place
	woken       func()
	clock       clock.Clock
	log         logrus.FieldLogger
	alive       atomic.Bool
	lost        bool // the kept place is of no use
	kind        atomic.Int32
}

// New returns a feed; Run makes it work. woken is called when operations have become due.
func New(provisioner Provisioner, waker Waker, place Place, woken func(), clock clock.Clock, log logrus.FieldLogger) *Feed {
	return &Feed{provisioner: provisioner, waker: waker, place: place, woken: woken, clock: clock, log: log}
}

// Alive reports whether the Provisioner tells of changes, so that nobody has to ask.
func (f *Feed) Alive() bool { return f.alive.Load() }

// Kind tells what the Provisioner is, as its last answer showed.
func (f *Feed) Kind() provisionerclient.Kind { return provisionerclient.Kind(f.kind.Load()) }

// Pace is how long to wait before the Provisioner is asked again about an operation that it was first asked about so long ago.
// Jitter keeps many operations from asking at the same time.
func (f *Feed) Pace(elapsed time.Duration) time.Duration {
	pause := fallback
	if !f.Alive() {
		pause = min(max(elapsed/share, soonest), latest)
	}

	return pause + time.Duration(rand.Int64N(int64(pause/share)+1))
}

// Run follows the changes until the context ends.
func (f *Feed) Run(ctx context.Context) error {
	cursor, pause := "", firstPause

	for ctx.Err() == nil {
		next, err := f.follow(ctx, cursor)
		f.alive.Store(err == nil)

		switch {
		case err == nil:
			f.kind.Store(int32(provisionerclient.KindOurs))
		case errors.Is(err, provisionerclient.ErrNoFeed):
			f.kind.Store(int32(provisionerclient.KindKyma))
		}

		if err == nil {
			cursor, pause, f.lost = next, firstPause, false

			continue
		}

		rest := pause

		if errors.Is(err, provisionerclient.ErrNoFeed) {
			rest = askAgain
		} else {
			pause = min(2*pause, longestPause)
		}

		if failure.Is(err, failure.Permanent) {
			cursor, f.lost = "", true // it is not known any more
		}

		if ctx.Err() == nil {
			f.log.WithError(err).Warn("the Provisioner does not tell of changes, it is polled meanwhile")
		}

		select {
		case <-ctx.Done():
		case <-f.clock.After(rest):
		}
	}

	return nil
}

// follow asks once for changes, passes them on, and returns the next cursor. Without one it goes on where the broker was last.
func (f *Feed) follow(ctx context.Context, cursor string) (string, error) {
	if cursor == "" && !f.lost {
		kept, err := f.place.FeedCursor(ctx)
		if err != nil {
			return "", err
		}

		cursor = kept
	}

	asked := f.clock.Now()

	changes, err := f.provisioner.Changes(ctx, cursor, wait)
	if err != nil {
		return "", err
	}

	// An answer that comes at once and tells nothing is not what was asked for: a Provisioner that stops, or a proxy.
	if cursor != "" && len(changes.Operations) == 0 && f.clock.Since(asked) < soonest {
		select {
		case <-ctx.Done():
		case <-f.clock.After(soonest):
		}
	}

	if err := f.pass(ctx, changes); err != nil {
		return "", err
	}

	if cursor == "" || len(changes.Operations) > 0 {
		err = f.place.SaveFeedCursor(ctx, changes.Cursor)
	}

	return changes.Cursor, err
}

// pass makes the operations due that wait for one of the changes.
func (f *Feed) pass(ctx context.Context, changes provisionerclient.Changes) error {
	events := make([]string, 0, len(changes.Operations))
	for _, change := range changes.Operations {
		events = append(events, provisionerwait.Event(change.OperationID))
	}

	woken, err := f.waker.Wake(ctx, events, f.clock.Now())
	if err != nil {
		return err
	}

	if woken > 0 {
		f.woken()
	}

	return nil
}
