package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/events"
	"github.com/environment-broker/environment-broker/internal/clients/webhook"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

const (
	// checkEvery is the interval at which a replica looks for due deliveries.
	checkEvery = 2 * time.Second
	// Timeout limits an attempt.
	Timeout = 10 * time.Second
	// calls is the maximum number of concurrent attempts for one webhook.
	calls = 4
	// batch is the maximum number of events or deliveries that one query returns. A webhook with maxPending pending deliveries
	// gets no further ones; the events stay in the log.
	batch      = 100
	maxPending = 1000
	// skew is the maximum difference between the clocks of two replicas. leaseMargin is how long the lease outlasts a call.
	skew        = 2 * time.Second
	leaseMargin = 15 * time.Second
	// stopTimeout limits how long a stopping replica tries to release the leases.
	stopTimeout = 2 * time.Second

	reasonGone = "the receiver has responded with status 410 Gone"
)

// Pauses returns the pauses between the attempts to deliver an event. The last attempt follows the last pause.
func Pauses() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour,
	}
}

// errLeaseLost ends the work on a webhook because another replica delivers its events, or because it was removed or disabled.
var errLeaseLost = errors.New("another replica delivers to the webhook")

// Store stores webhooks. webhooks.Store implements it.
type Store interface { //nolint:interfacebloat // the crash test kills a replica at each of its methods
	List(ctx context.Context) ([]webhooks.Webhook, error)
	Current(ctx context.Context, id string) (webhooks.Webhook, error)
	Hold(ctx context.Context, id, owner string, now, until time.Time) (bool, error)
	ReturnLease(ctx context.Context, id, owner string) error
	Count(ctx context.Context, id string, dead bool, limit int) (int, error)
	Add(ctx context.Context, webhook webhooks.Webhook, owner string, events []eventlog.Event, last int64, now time.Time) (bool, error)
	Due(ctx context.Context, id string, now time.Time, limit int) ([]webhooks.Delivery, error)
	Attempt(ctx context.Context, delivery webhooks.Delivery, now time.Time) (webhooks.Delivery, error)
	Fail(ctx context.Context, delivery webhooks.Delivery) error
	Deliver(ctx context.Context, delivery webhooks.Delivery, now time.Time) (bool, error)
	Disable(ctx context.Context, id, reason string, now time.Time) error
}

// Log reads the events. eventlog.Store implements it.
type Log interface {
	Read(ctx context.Context, filter eventlog.Filter, after int64, limit int) ([]eventlog.Event, int64, error)
}

// Options are the dependencies of a Deliverer. All fields are required.
type Options struct {
	Store  Store
	Events Log
	// Send sends a message. It takes at most Timeout.
	Send func(ctx context.Context, message webhook.Message) error
	// Jitter varies a pause a little, so that receivers do not get all repeated messages at the same time.
	Jitter func(pause time.Duration) time.Duration
	// PublicURL is the broker's public URL, which CloudEvents contain as their source.
	PublicURL string
	Metrics   *Metrics
	Clock     clock.WithTicker
	Log       logrus.FieldLogger
}

// Deliverer delivers events to all webhooks. It is safe for concurrent use.
type Deliverer struct {
	Options

	owner   string
	running sync.WaitGroup

	mutex sync.Mutex
	// active contains the IDs of the webhooks that this replica is working on.
	active map[string]bool
}

// New returns a Deliverer, whose Part the service must run.
func New(options Options) *Deliverer {
	return &Deliverer{Options: options, owner: uuid.NewString(), active: map[string]bool{}}
}

// Part returns the lifecycle.Part that calls Start periodically. When the part stops, it waits for running attempts and releases
// the leases.
func (d *Deliverer) Part() lifecycle.Part {
	periodic := lifecycle.Periodic{Name: "webhooks", Every: checkEvery, Work: d.Start, Clock: d.Clock, Log: d.Log}.Part()

	return lifecycle.Part{Name: periodic.Name, Run: func(ctx context.Context) error {
		defer d.Wait()

		return periodic.Run(ctx)
	}}
}

// Start starts delivering to each webhook that this replica is not yet working on. It does not wait for the deliveries. It returns an
// error if there are webhooks that cannot be decrypted.
func (d *Deliverer) Start(ctx context.Context) error {
	all, err := d.Store.List(ctx)
	if err != nil {
		return err
	}

	var unreadable []error

	for _, each := range all {
		if each.Unreadable {
			unreadable = append(unreadable, fmt.Errorf("webhook %s gets no events: %w", each.ID, webhooks.ErrUnreadable))

			continue
		}

		if each.DisabledAt.IsZero() && d.begin(each.ID) {
			d.running.Go(func() {
				defer d.end(each.ID)

				if err := d.deliver(ctx, each); err != nil && ctx.Err() == nil {
					d.Log.WithError(err).WithField(fieldWebhook, each.ID).Warnf("webhooks: the delivery was interrupted; trying again in %s", checkEvery)
				}
			})
		}
	}

	return errors.Join(unreadable...)
}

// fieldWebhook is the log field with the ID of a webhook.
const fieldWebhook = "webhook"

// Wait waits until no delivery is running.
func (d *Deliverer) Wait() { d.running.Wait() }

func (d *Deliverer) begin(id string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	if d.active[id] {
		return false
	}

	d.active[id] = true

	return true
}

func (d *Deliverer) end(id string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	delete(d.active, id)
}

// deliver sends all due events to the webhook, if this replica has the lease or can take it.
func (d *Deliverer) deliver(ctx context.Context, to webhooks.Webhook) error {
	run := &run{Deliverer: d, webhook: to}

	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()

		if err := d.Store.ReturnLease(limited, to.ID, d.owner); err != nil {
			d.Log.WithError(err).Debug("webhooks: the lease could not be released; another replica can take it when it expires")
		}
	}()

	for {
		done, err := run.pass(ctx)
		if errors.Is(err, errLeaseLost) {
			return nil
		}

		if err != nil || done {
			return err
		}
	}
}

// run is the work of this replica on one webhook.
type run struct {
	*Deliverer

	webhook webhooks.Webhook

	mutex sync.Mutex
	// heldUntil is when the lease ends.
	heldUntil time.Time
}

// pass turns a batch of new events into deliveries and sends a batch of due deliveries. done means that nothing is left to do
// now.
func (r *run) pass(ctx context.Context) (done bool, err error) {
	if err := r.hold(ctx); err != nil {
		return false, err
	}

	// Read the webhook again, because its secrets may have changed.
	if r.webhook, err = r.Store.Current(ctx, r.webhook.ID); errors.Is(err, storage.ErrNotFound) {
		return false, errLeaseLost
	} else if err != nil {
		return false, err
	}

	added, err := r.add(ctx)
	if err != nil {
		return false, err
	}

	due, err := r.Store.Due(ctx, r.webhook.ID, r.Clock.Now(), batch)
	if err != nil || len(due) == 0 {
		return !added, err
	}

	return false, r.all(ctx, due)
}

// hold makes sure that this replica keeps the lease until the end of an attempt that starts now.
func (r *run) hold(ctx context.Context) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	now := r.Clock.Now()
	if r.heldUntil.Sub(now) >= Timeout+skew {
		return nil
	}

	until := now.Add(Timeout + leaseMargin)

	held, err := r.Store.Hold(ctx, r.webhook.ID, r.owner, now, until)
	if err != nil {
		return err
	}

	if !held {
		r.heldUntil = time.Time{}

		return errLeaseLost
	}

	r.heldUntil = until

	return nil
}

// add turns the next events of the log into deliveries. It reports whether its position in the log has moved.
func (r *run) add(ctx context.Context) (bool, error) {
	if pending, err := r.Store.Count(ctx, r.webhook.ID, false, maxPending); err != nil || pending >= maxPending {
		return false, err
	}

	found, last, err := r.Events.Read(ctx, r.webhook.Filter, r.webhook.Position, batch)
	if err != nil || last == r.webhook.Position {
		return false, err
	}

	added, err := r.Store.Add(ctx, r.webhook, r.owner, found, last, r.Clock.Now())
	if err != nil {
		return false, err
	}

	if !added {
		return false, errLeaseLost
	}

	return true, nil
}

// all makes one attempt for each delivery, at most calls at the same time. After an error, it starts no further attempt.
func (r *run) all(ctx context.Context, due []webhooks.Delivery) error {
	return lifecycle.Each(calls, due, func(delivery webhooks.Delivery) error { return r.one(ctx, delivery) })
}

// one makes an attempt and records its result.
func (r *run) one(ctx context.Context, delivery webhooks.Delivery) error {
	if err := r.hold(ctx); err != nil {
		return err
	}

	now := r.Clock.Now()

	body, err := json.Marshal(events.CloudEvent(delivery.Event, r.PublicURL))
	if err != nil {
		return failure.While(err, "encoding event %s", delivery.Event.ID)
	}

	if delivery, err = r.Store.Attempt(ctx, delivery, now); err != nil {
		return err
	}

	sent := r.Send(ctx, webhook.Message{
		URL: r.webhook.URL, Secrets: Signing(r.webhook.Secrets, now), ID: delivery.Event.ID, At: now, Body: body,
	})

	if sent != nil && ctx.Err() != nil { // the replica is stopping, and the attempt may have arrived
		return sent
	}

	if sent == nil {
		confirmed, err := r.Store.Deliver(ctx, delivery, r.Clock.Now())
		if confirmed {
			r.Metrics.ended(resultDelivered)
		}

		return err
	}

	return r.failed(ctx, delivery, sent)
}

// failed records a failed attempt.
func (r *run) failed(ctx context.Context, delivery webhooks.Delivery, cause error) error {
	r.Metrics.ended(resultFailed)

	now := r.Clock.Now()
	delivery.Status, delivery.Error = 0, cause.Error()

	pause := time.Duration(0)
	if pauses := Pauses(); delivery.Attempts <= len(pauses) {
		pause = r.Jitter(pauses[delivery.Attempts-1])
	} else {
		delivery.Dead = true
	}

	if response, is := errors.AsType[*webhook.Error](cause); is {
		delivery.Status, pause = response.Status, max(pause, response.RetryAfter)
	}

	delivery.NextAt = now.Add(pause)

	if err := r.Store.Fail(ctx, delivery); err != nil {
		return err
	}

	line := r.Log.WithField(fieldWebhook, r.webhook.ID).WithError(cause)

	if delivery.Dead {
		r.Metrics.ended(resultDead)
		line.Warnf("webhooks: event %s became a dead letter after %d attempts", delivery.Event.ID, delivery.Attempts)
	}

	if delivery.Status != http.StatusGone {
		return nil
	}

	line.Warn("webhooks: disabling the webhook, because " + reasonGone)

	return errors.Join(r.Store.Disable(ctx, r.webhook.ID, reasonGone, now), errLeaseLost)
}

// Signing returns the secrets with which a message must be signed at the given time.
func Signing(secrets webhooks.Secrets, now time.Time) []secret.String {
	signing := []secret.String{secrets.Current}
	if secrets.Previous != "" && now.Before(secrets.PreviousUntil) {
		signing = append(signing, secrets.Previous)
	}

	return signing
}
