package service

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// changes is the maximum number of buffered changes. Beyond it the watch blocks.
	changes = 1024
	// gather is how long changes are collected for one update.
	gather = 50 * time.Millisecond
	// wakePause is the pause after an attempt that failed because the database is unavailable.
	wakePause = time.Second
)

// waiting makes operations due that wait for events.
type waiting interface {
	Wake(ctx context.Context, events []string, now time.Time) (int64, error)
}

// shootWaker makes operations due when their Shoot changes, so that steps need not wait for their next poll. It collects changes
// for a moment: one update of the database wakes the operations of many Shoots.
type shootWaker struct {
	store   waiting
	wake    func()
	clock   clock.Clock
	log     logrus.FieldLogger
	changed chan string
}

// notify adds a changed Shoot. It blocks while the buffer is full, which slows the watch down but loses nothing; it returns when
// the context ends.
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
			w.wakeFor(ctx, w.more(ctx, operation.ShootEvent(name)))
		}
	}
}

// more collects the changes that follow the first one.
func (w *shootWaker) more(ctx context.Context, first string) []string {
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

// wakeFor makes the operations due. It tries again while the database is unavailable: a change is reported only once.
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
			return // they poll, too
		}

		select {
		case <-ctx.Done():
			return
		case <-w.clock.After(wakePause):
		}
	}
}
