// Package feed follows the change feed of the Provisioner. When an operation of the Provisioner changes, Feed
// makes the waiting operations of the broker due. Without a feed, as with the Kyma Provisioner, the operations
// poll at the pace of Pace.
//
// The feed only saves time: a lost change delays an operation until its next poll, at most pollWithFeed later.
// Every replica follows the feed and makes operations of all replicas due, so the feed works as long as one
// replica runs. Intervals are constants of this file.
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
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

const (
	// wait is how long the Provisioner may hold a request without changes.
	wait = 20 * time.Second
	// firstPause and maxPause bound the pause after an error, which doubles with each one.
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// retryFeed is the pause after ErrNoFeed. The Provisioner may be replaced by one with a feed.
	retryFeed = 5 * time.Minute

	// pollWithFeed is the interval of polls while the feed works, when they are only a safeguard.
	pollWithFeed = 10 * time.Minute
	// Without a feed the interval is 1/pollShare of the elapsed time, between minPoll and maxPoll.
	minPoll   = time.Second
	maxPoll   = 20 * time.Second
	pollShare = 20
)

// Provisioner has a feed of changed operations. provisionerclient.Client implements it.
type Provisioner interface {
	Changes(ctx context.Context, after string, wait time.Duration) (provisionerclient.Changes, error)
}

// Waker makes operations due that wait for one of the events, and returns their number. The store of operations
// implements it.
type Waker interface {
	Wake(ctx context.Context, events []string, now time.Time) (int64, error)
}

// Cursors stores the broker's cursor in the feed. All replicas share one cursor, because each of them makes
// operations of all replicas due. After a restart of all replicas, the feed resumes at the stored cursor, and
// no change is lost.
type Cursors interface {
	// FeedCursor returns the stored cursor, or an empty text.
	FeedCursor(ctx context.Context) (string, error)
	// SaveFeedCursor overwrites the stored cursor, also with an earlier one: its changes are then read again,
	// which is harmless.
	SaveFeedCursor(ctx context.Context, cursor string) error
}

// Feed follows one Provisioner. Run is called once; the other methods are safe for concurrent use.
type Feed struct {
	provisioner Provisioner
	waker       Waker
	cursors     Cursors
	woken       func()
	clock       clock.Clock
	log         logrus.FieldLogger
	// alive reports that the last request succeeded.
	alive atomic.Bool
	// ignoreStored reports that the Provisioner rejected the stored cursor. Only Run uses it.
	ignoreStored bool
	// kind is the Kind of the Provisioner.
	kind atomic.Int32
}

// New returns a feed that Run follows. It calls woken after operations have become due.
func New(provisioner Provisioner, waker Waker, cursors Cursors, woken func(), clock clock.Clock, log logrus.FieldLogger) *Feed {
	return &Feed{provisioner: provisioner, waker: waker, cursors: cursors, woken: woken, clock: clock, log: log}
}

// Alive reports whether the feed works, so that operations need not poll.
func (f *Feed) Alive() bool { return f.alive.Load() }

// Kind returns the kind of the Provisioner according to its last answer. An answer that shows neither kind
// leaves the kind unchanged.
func (f *Feed) Kind() provisionerclient.Kind { return provisionerclient.Kind(f.kind.Load()) }

// Pace returns the pause before the next poll of an operation that has been polled for the elapsed time. Jitter
// spreads the polls of operations that started together.
func (f *Feed) Pace(elapsed time.Duration) time.Duration {
	pause := pollWithFeed
	if !f.Alive() {
		pause = min(max(elapsed/pollShare, minPoll), maxPoll)
	}

	return pause + time.Duration(rand.Int64N(int64(pause/pollShare)+1))
}

// Run follows the feed until the context ends. Errors are logged and never end it. A permanent error means that
// the Provisioner has forgotten the cursor: Run then continues at the present, and operations find the missed
// changes when they poll.
func (f *Feed) Run(ctx context.Context) error {
	cursor, pause := "", firstPause

	for ctx.Err() == nil {
		next, err := f.follow(ctx, cursor)
		f.alive.Store(err == nil)

		rest := pause

		switch {
		case err == nil:
			f.kind.Store(int32(provisionerclient.KindOurs))
			cursor, pause, f.ignoreStored = next, firstPause, false

			continue
		case errors.Is(err, provisionerclient.ErrNoFeed):
			f.kind.Store(int32(provisionerclient.KindKyma))

			rest = retryFeed
		default:
			pause = min(2*pause, maxPause)
		}

		if failure.Is(err, failure.Permanent) {
			cursor, f.ignoreStored = "", true // the cursor is unknown
		}

		if ctx.Err() == nil {
			f.log.WithError(err).Warn("the feed of the Provisioner fails, operations poll meanwhile")
		}

		_ = lifecycle.Pause(ctx, f.clock, rest) // the condition of the loop reports the end of the context
	}

	return nil
}

// follow requests changes once, wakes the waiting operations, and returns the next cursor. Without a cursor it
// resumes at the stored one. The cursor is stored after the wake: a crash in between repeats the wake, and
// never loses a change.
func (f *Feed) follow(ctx context.Context, cursor string) (string, error) {
	if cursor == "" && !f.ignoreStored {
		stored, err := f.cursors.FeedCursor(ctx)
		if err != nil {
			return "", err
		}

		cursor = stored
	}

	requested := f.clock.Now()

	changes, err := f.provisioner.Changes(ctx, cursor, wait)
	if err != nil {
		return "", err
	}

	// An immediate empty answer comes from a stopping Provisioner or a proxy. Without a pause this would be a
	// busy loop.
	if cursor != "" && len(changes.Operations) == 0 && f.clock.Since(requested) < minPoll {
		if err := lifecycle.Pause(ctx, f.clock, minPoll); err != nil {
			return "", err
		}
	}

	if err := f.wake(ctx, changes); err != nil {
		return "", err
	}

	if cursor == "" || len(changes.Operations) > 0 {
		err = f.cursors.SaveFeedCursor(ctx, changes.Cursor)
	}

	return changes.Cursor, err
}

// wake makes the operations due that wait for one of the changes, and wakes the engine if there are any.
func (f *Feed) wake(ctx context.Context, changes provisionerclient.Changes) error {
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
