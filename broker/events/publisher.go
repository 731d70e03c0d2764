package events

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/storage/eventlog"
)

// publishEvery is the interval at which a replica publishes new events and looks for events that other replicas have published.
const publishEvery = time.Second / 2

// Log is the log of events. eventlog.Store implements it.
type Log interface {
	Publish(ctx context.Context, now time.Time) (int, error)
	Head(ctx context.Context) (eventlog.Head, error)
}

// Publisher publishes new events. It is safe for concurrent use.
type Publisher struct {
	log   Log
	clock clock.WithTicker
	line  logrus.FieldLogger

	mutex sync.Mutex
	head  eventlog.Head
	// grown is closed and replaced when the log has grown.
	grown chan struct{}
}

// NewPublisher returns a Publisher, whose Part the service must run.
func NewPublisher(log Log, clock clock.WithTicker, line logrus.FieldLogger) *Publisher {
	return &Publisher{log: log, clock: clock, line: line, grown: make(chan struct{})}
}

// Part returns the lifecycle.Part that calls Publish periodically.
func (p *Publisher) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "events", Every: publishEvery, Work: p.Publish, Clock: p.clock, Log: p.line}.Part()
}

// Publish publishes new events, and wakes the consumers if the log has grown.
func (p *Publisher) Publish(ctx context.Context) error {
	if _, err := p.log.Publish(ctx, p.clock.Now()); err != nil {
		return err
	}

	head, err := p.log.Head(ctx)
	if err != nil {
		return err
	}

	p.mutex.Lock()
	defer p.mutex.Unlock()

	if head.Position != p.head.Position {
		close(p.grown)
		p.grown = make(chan struct{})
	}

	p.head = head

	return nil
}

// Grown returns a channel that is closed when the log grows after this call.
func (p *Publisher) Grown() <-chan struct{} {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	return p.grown
}

// Position returns the position of the newest event that this replica knows.
func (p *Publisher) Position() int64 {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	return p.head.Position
}
