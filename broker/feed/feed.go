// Package feed follows the change feed of the Provisioner. When an operation of the Provisioner changes, Feed wakes
// the operations of the broker that wait for it. While there is no feed, as with Kyma Provisioner, operations poll at
// intervals that Pace determines.
//
// The feed only saves time: if a change is lost, operations notice the change at their next poll, at most about pollWithFeed
// later. Every replica follows the feed and wakes operations of all replicas, so one running replica is enough. The
// intervals are constants in this file.
package feed

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

const (
	// wait is the maximum time for which the Provisioner may delay its response while there are no changes.
	wait = 20 * time.Second
	// firstPause and maxPause bound the pause after an error. The pause doubles with each successive error.
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// retryFeed is the pause after ErrNoFeed. The Provisioner may later be replaced by one that has a feed.
	retryFeed = 5 * time.Minute

	// pollWithFeed is the interval of polls while the feed works. The polls are then only a safeguard.
	pollWithFeed = 10 * time.Minute
	// Without a feed, the interval between polls is 1/pollShare of the elapsed time, but at least minPoll and at most
	// maxPoll.
	minPoll   = time.Second
	maxPoll   = 20 * time.Second
	pollShare = 20
)

// Provisioner returns the operations that changed after a cursor. provisionerclient.Client implements it.
type Provisioner interface {
	Changes(ctx context.Context, after string, wait time.Duration) (provisionerclient.Changes, error)
}

// Waker wakes the operations that wait for one of the events: it makes them due, and returns their number. operations.Store
// implements it.
type Waker interface {
	Wake(ctx context.Context, events []string, now time.Time) (int64, error)
}

// Cursors stores the position of the broker in the feed. All replicas share one cursor, because each replica wakes
// the operations of all replicas. If all replicas restart, the feed resumes at the stored cursor and no change is
// lost.
type Cursors interface {
	// FeedCursor returns the stored cursor, or an empty string if there is none.
	FeedCursor(ctx context.Context) (string, error)
	// SaveFeedCursor overwrites the stored cursor. The new cursor may be earlier than the stored one; the broker
	// then reads some changes again, which is harmless.
	SaveFeedCursor(ctx context.Context, cursor string) error
}

// Feed follows the feed of one Provisioner. Run may be called only once; the other methods are safe for concurrent
// use.
type Feed struct {
	provisioner Provisioner
	waker       Waker
	cursors     Cursors
	woken       func()
	clock       clock.Clock
	log         logrus.FieldLogger
	// alive reports whether the last request succeeded.
	alive atomic.Bool
	// ignoreStored is true after the Provisioner has rejected the stored cursor. Only Run uses it.
	ignoreStored bool
	// kind is the provisionerclient.Kind that Kind returns.
	kind atomic.Int32
}

// New returns a Feed, which does nothing until Run is called. The Feed calls woken after it has woken operations.
func New(provisioner Provisioner, waker Waker, cursors Cursors, woken func(), clock clock.Clock, log logrus.FieldLogger) *Feed {
	return &Feed{provisioner: provisioner, waker: waker, cursors: cursors, woken: woken, clock: clock, log: log}
}

// Alive reports whether the feed works. While it does, operations poll only as a safeguard.
func (f *Feed) Alive() bool { return f.alive.Load() }

// Kind returns the kind of the Provisioner, according to its last response. A response that could come from either
// kind does not change the result.
func (f *Feed) Kind() provisionerclient.Kind { return provisionerclient.Kind(f.kind.Load()) }

// Pace returns the pause before the next poll of an operation that has waited for the elapsed time. It includes a
// random part, which spreads the polls of operations that started at the same time.
func (f *Feed) Pace(elapsed time.Duration) time.Duration {
	pause := pollWithFeed
	if !f.Alive() {
		pause = min(max(elapsed/pollShare, minPoll), maxPoll)
	}

	return pause + time.Duration(rand.Int64N(int64(pause/pollShare)+1))
}

// Run follows the feed until the context ends. It logs errors and continues. A Provisioner without a feed is logged
// only when it is first recognized, because it is not an error. After a permanent error, which means that the
// Provisioner no longer accepts the cursor, Run continues with new changes; operations find the missed changes when
// they poll.
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
			if f.kind.Swap(int32(provisionerclient.KindKyma)) != int32(provisionerclient.KindKyma) {
				f.log.Info("the Provisioner has no change feed (Kyma Provisioner): operations are polled")
			}

			rest = retryFeed
		case ctx.Err() == nil:
			pause = min(2*pause, maxPause)

			f.log.WithError(err).Warn("cannot read the Provisioner's change feed; polling operations until it works again")
		}

		if failure.Is(err, failure.Permanent) {
			cursor, f.ignoreStored = "", true // the Provisioner does not accept the cursor
		}

		_ = lifecycle.Pause(ctx, f.clock, rest) // the condition of the loop reports the end of the context
	}

	return nil
}

// follow requests changes once, wakes the waiting operations, and returns the next cursor. If cursor is empty, it
// starts at the stored cursor. It stores the next cursor after the wake-up: a crash between the two repeats the
// wake-up, but loses no change.
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

	// An immediate empty response comes from a Provisioner that is stopping, or from a proxy. Pause to avoid a busy
	// loop.
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

// wake wakes the operations that wait for one of the changes. If at least one was waiting, it also wakes the engine.
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
