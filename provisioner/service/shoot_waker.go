package service

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// changes is how many changed Shoots may wait to be told. When there are more, the watch waits.
	changes = 1024
	// gather is how long changes are gathered before they are told together.
	gather = 50 * time.Millisecond
)

// shootWaker makes operations due whose Shoot changed.
type shootWaker struct {
	store   *operations.Store
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

func (w *shootWaker) wakeFor(ctx context.Context, events []string) {
	woken, err := w.store.Wake(ctx, events, w.clock.Now())
	if err != nil {
		w.log.WithError(err).Warn("operations could not be told that their cluster changed, they look again by themselves")
	}

	if woken > 0 {
		w.wake()
	}
}
