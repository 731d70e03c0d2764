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
	// changes is how many changed Shoots may wait to be told. When there are more, the watch waits.
	changes = 1024
	// gather is how long changes are gathered before they are told together.
	gather = 50 * time.Millisecond
	// tellAgain is the pause after a try that the database did not answer.
	tellAgain = time.Second
)

// waiting are the operations that wait for events.
type waiting interface {
	Wake(ctx context.Context, events []string, now time.Time) (int64, error)
}

// shootWaker makes operations due whose Shoot changed.
type shootWaker struct {
	store   waiting
	wake    func()
	clock   clock.Clock
	log     logrus.FieldLogger
	changed chan string
}

// tell takes note of a changed Shoot. When the context has ended nobody wants to know any more.
func (w *shootWaker) tell(ctx context.Context, shootName string) {
	select {
	case w.changed <- shootName:
	case <-ctx.Done():
	}
}

// run tells the store of changed Shoots, several at once, until the context ends.
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

// more gathers the changes that follow the first one closely.
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

// wakeFor makes the operations due. While the database is away it tries again: a change is told only once.
func (w *shootWaker) wakeFor(ctx context.Context, events []string) {
	for {
		woken, err := w.store.Wake(ctx, events, w.clock.Now())
		if woken > 0 {
			w.wake()
		}

		if err == nil {
			return
		}

		w.log.WithError(err).Warn("operations could not be told that their cluster changed")

		if !storage.IsUnavailable(err) {
			return // they look again by themselves
		}

		select {
		case <-ctx.Done():
			return
		case <-w.clock.After(tellAgain):
		}
	}
}
