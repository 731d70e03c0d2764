package service

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// changes is the maximum number of changes in the buffer and in a batch. The watch blocks while the buffer is full.
	changes = 1024
	// gather is how long the waker collects changes for one database update.
	gather = 50 * time.Millisecond
	// wakePause is the pause between attempts while the database is unavailable.
	wakePause = time.Second
)

// waiting is the part of operations.Store that shootWaker uses.
type waiting interface {
	// Wake wakes the operations that are waiting for one of the events, by making them due now. It returns their number.
	Wake(ctx context.Context, events []string, now time.Time) (int64, error)
}

// shootWaker makes operations due when their Shoot changes, before the next poll of their step. It collects changes for a moment,
// because one database update can wake the operations of many Shoots. After a crash, the operations of collected changes wait for
// the next poll.
type shootWaker struct {
	store   waiting
	wake    func()
	clock   clock.Clock
	log     logrus.FieldLogger
	changed chan string
}

// notify adds a changed Shoot. It blocks while the buffer is full, which slows down the watch but does not lose changes. It
// returns early if the context ends. The watch calls it from its own goroutine.
func (w *shootWaker) notify(ctx context.Context, shootName string) {
	select {
	case w.changed <- shootName:
	case <-ctx.Done():
	}
}

// run wakes operations in batches until the context ends.
func (w *shootWaker) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case name := <-w.changed:
			w.wakeFor(ctx, w.collect(ctx, operation.ShootEvent(name)))
		}
	}
}

// collect returns a batch that consists of the given first event and the events of all changes that arrive until gather has
// passed or the batch is full.
func (w *shootWaker) collect(ctx context.Context, first string) []string {
	events := []string{first}
	enough := w.clock.After(gather)

	for len(events) < changes {
		select {
		case <-ctx.Done():
			return events
		case <-enough:
			return events
		case name := <-w.changed:
			events = append(events, operation.ShootEvent(name))
		}
	}

	return events
}

// wakeFor wakes the operations that are waiting for one of the events, by making them due now. It retries while the database is
// unavailable, because the watch reports each change only once.
func (w *shootWaker) wakeFor(ctx context.Context, events []string) {
	for {
		woken, err := w.store.Wake(ctx, events, w.clock.Now())
		if woken > 0 {
			w.wake()
		}

		if err == nil {
			return
		}

		w.log.WithError(err).Warn("waking operations of changed clusters failed")

		if !storage.IsUnavailable(err) {
			return // the operations will run at their next poll
		}

		if lifecycle.Pause(ctx, w.clock, wakePause) != nil {
			return
		}
	}
}
