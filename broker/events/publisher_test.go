package events_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/events"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage/eventlog"
)

// fakeLog is a log whose head the test sets.
type fakeLog struct {
	head      eventlog.Head
	err       error
	published int
}

func (l *fakeLog) Publish(context.Context, time.Time) (int, error) {
	l.published++

	return 0, l.err
}

func (l *fakeLog) Head(context.Context) (eventlog.Head, error) { return l.head, nil }

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

func TestPublisher(t *testing.T) {
	var log fakeLog

	publisher := events.NewPublisher(&log, clocktesting.NewFakeClock(time.Now()), logging.Discard())

	for _, c := range []struct {
		reason string
		head   int64
		err    error
		grown  bool
	}{
		{"an empty log", 0, nil, false},
		{"another replica has published", 3, nil, true},
		{"nothing new", 3, nil, false},
		{"the database is unreachable", 4, errors.New("away"), false},
		{"it is back", 4, nil, true},
	} {
		log.head.Position, log.err = c.head, c.err
		grown := publisher.Grown()

		if err := publisher.Publish(t.Context()); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.reason, err)
		}

		if isClosed(grown) != c.grown {
			t.Errorf("%s: told %t, want %t", c.reason, !c.grown, c.grown)
		}
	}

	if log.published != 5 {
		t.Errorf("published %d times", log.published)
	}
}
