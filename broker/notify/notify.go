package notify

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/notifications"
)

const (
	// checkEvery is the interval at which the replica with the lease looks for due messages.
	checkEvery = 2 * time.Second
	// batch is the maximum number of events or messages that one query returns.
	batch = 100
	// firstPause is the pause after the first failed attempt. It doubles up to maxPause.
	firstPause = 5 * time.Second
	maxPause   = time.Minute
	// Window is how long a message is retried, counted from the first attempt.
	Window = 5 * time.Minute
	// skew is the maximum difference between the clocks of two replicas. leaseMargin is how long the lease outlasts a call.
	skew        = 2 * time.Second
	leaseMargin = 15 * time.Second
	// stopTimeout limits how long a stopping replica tries to release the lease.
	stopTimeout = 2 * time.Second
)

// errLeaseLost makes Deliver stop, because another replica has the lease.
var errLeaseLost = errors.New("another replica delivers the notifications")

// Store stores the messages. notifications.Store implements it.
type Store interface {
	Position(ctx context.Context) (int64, error)
	Add(ctx context.Context, owner string, events []eventlog.Event, position, last int64) (bool, error)
	Hold(ctx context.Context, owner string, now, until time.Time) (bool, error)
	ReturnLease(ctx context.Context, owner string) error
	Due(ctx context.Context, now time.Time, limit int) ([]notifications.Pending, error)
	Attempt(ctx context.Context, message notifications.Pending, now time.Time) (notifications.Pending, error)
	Retry(ctx context.Context, message notifications.Pending, next time.Time) error
	End(ctx context.Context, message notifications.Pending, delivered bool, now time.Time) (bool, error)
}

// Log reads the events. eventlog.Store implements it.
type Log interface {
	Read(ctx context.Context, filter eventlog.Filter, after int64, limit int) ([]eventlog.Event, int64, error)
}

// Options are the dependencies of a Delivery. All fields are required.
type Options struct {
	Store  Store
	Events Log
	// Send sends a message. It takes at most Timeout. After an error of kind failure.Transient, the message is sent again.
	Send    func(ctx context.Context, message notification.Message) error
	Timeout time.Duration
	// Calls is the maximum number of messages that are sent at the same time.
	Calls   int
	Metrics *Metrics
	Clock   clock.WithTicker
	Log     logrus.FieldLogger
}

// Delivery turns events into messages, and sends them.
type Delivery struct {
	Options

	owner string

	mutex sync.Mutex
	// heldUntil is when the lease of this replica ends.
	heldUntil time.Time
}

// New returns a Delivery, whose Part the service must run.
func New(options Options) *Delivery {
	return &Delivery{Options: options, owner: uuid.NewString()}
}

// Part returns the lifecycle.Part that calls Deliver periodically. When the part stops, it releases the lease.
func (d *Delivery) Part() lifecycle.Part {
	periodic := lifecycle.Periodic{Name: "notifications", Every: checkEvery, Work: d.Deliver, Clock: d.Clock, Log: d.Log}.Part()

	return lifecycle.Part{Name: periodic.Name, Run: func(ctx context.Context) error {
		err := periodic.Run(ctx)

		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()

		if lost := d.Store.ReturnLease(limited, d.owner); lost != nil {
			d.Log.WithError(lost).Debug("notifications: the lease could not be released; another replica can take it when it expires")
		}

		return err
	}}
}

// Deliver turns all new events into messages and sends all due messages, if this replica has the lease or can take it. It returns
// database errors; the next call continues.
func (d *Delivery) Deliver(ctx context.Context) error {
	for {
		done, err := d.pass(ctx)
		if errors.Is(err, errLeaseLost) {
			return nil
		}

		if err != nil || done {
			return err
		}
	}
}

// pass turns a batch of events into messages and sends a batch of due messages. done means that nothing is left to do now. If the lease
// is lost, pass returns errLeaseLost.
func (d *Delivery) pass(ctx context.Context) (done bool, err error) {
	if err := d.hold(ctx); err != nil {
		return false, err
	}

	added, err := d.add(ctx)
	if err != nil {
		return false, err
	}

	due, err := d.Store.Due(ctx, d.Clock.Now(), batch)
	if err != nil || len(due) == 0 {
		return !added, err
	}

	return false, d.all(ctx, due)
}

// add turns the next events of the log into messages. It reports whether its position in the log has moved.
func (d *Delivery) add(ctx context.Context) (bool, error) {
	position, err := d.Store.Position(ctx)
	if err != nil {
		return false, err
	}

	found, last, err := d.Events.Read(ctx, notifications.Selected(), position, batch)
	if err != nil || last == position {
		return false, err
	}

	added, err := d.Store.Add(ctx, d.owner, found, position, last)
	if err == nil && !added {
		err = errLeaseLost
	}

	return err == nil, err
}

// hold makes sure that this replica keeps the lease until the end of a call that starts now.
func (d *Delivery) hold(ctx context.Context) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	now := d.Clock.Now()
	if d.heldUntil.Sub(now) >= d.Timeout+skew {
		return nil
	}

	until := now.Add(d.Timeout + leaseMargin)

	held, err := d.Store.Hold(ctx, d.owner, now, until)
	if err != nil {
		return err
	}

	if !held {
		d.heldUntil = time.Time{}

		return errLeaseLost
	}

	d.heldUntil = until

	return nil
}

// all sends the messages, at most Calls at the same time. After an error, it starts to send no further messages.
func (d *Delivery) all(ctx context.Context, due []notifications.Pending) error {
	return lifecycle.Each(d.Calls, due, func(message notifications.Pending) error { return d.one(ctx, message) })
}

// one sends the message and records the result.
func (d *Delivery) one(ctx context.Context, message notifications.Pending) error {
	if err := d.hold(ctx); err != nil {
		return err
	}

	message, err := d.Store.Attempt(ctx, message, d.Clock.Now())
	if err != nil {
		return err
	}

	problem := d.Send(ctx, message.Message)
	if ctx.Err() != nil { // the replica is stopping, and the attempt does not count as failed
		return ctx.Err() //nolint:wrapcheck // the error needs no context
	}

	now := d.Clock.Now()
	if end := message.FirstAt.Add(Window); failure.Is(problem, failure.Transient) && now.Before(end) {
		return d.Store.Retry(ctx, message, earlier(now.Add(restclient.RetryAfter(problem, pause(message.Attempts))), end))
	}

	ended, err := d.Store.End(ctx, message, problem == nil, now)
	if err != nil || !ended {
		return err
	}

	d.Metrics.ended(problem == nil)

	if problem != nil {
		d.Log.WithError(problem).WithFields(logrus.Fields{
			logging.OperationID: message.EventID, logging.InstanceID: message.InstanceID, logging.Attempt: message.Attempts,
		}).Warnf("notifications: gave up sending the message; customers are not informed (%s)", message.Action)
	}

	return nil
}

// pause returns the pause after the failed attempt with the given number, counted from 1.
func pause(attempt int) time.Duration {
	const doublings = 4 // 80 s, more than maxPause

	return min(firstPause<<min(attempt-1, doublings), maxPause)
}

func earlier(one, other time.Time) time.Time {
	if one.Before(other) {
		return one
	}

	return other
}
