//go:build garden

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

// outcome is the planned outcome of an order: whether and when its instance is deleted.
type outcome string

const (
	stays                 outcome = "stays"
	deletedImmediately    outcome = "deleted immediately"
	deletedDuringCreation outcome = "deleted during its creation"
	deletedWhenReady      outcome = "deleted when ready"
)

// pollInterval is the time that a customer waits between two polls.
const pollInterval = 300 * time.Millisecond

type order struct {
	id      string
	outcome outcome
	// polls is the number of polls after which the customer deletes the instance during its creation.
	polls int
	// accepted lists the IDs of the operations that the broker accepted with 202.
	accepted []string
}

// newOrders draws orders with random outcomes.
func newOrders(random *rand.Rand, prefix string, count int) []*order {
	outcomes := []outcome{stays, stays, deletedImmediately, deletedDuringCreation, deletedDuringCreation, deletedWhenReady}
	orders := make([]*order, 0, count)

	for i := range count {
		orders = append(orders, &order{
			id: fmt.Sprintf("%s-%03d", prefix, i), outcome: outcomes[random.IntN(len(outcomes))], polls: 1 + random.IntN(12),
		})
	}

	return orders
}

// load is a group of concurrent customers. Each customer works through one order at a time.
type load struct {
	done      atomic.Int64
	customers sync.WaitGroup
}

// order starts customers that take orders from a shared queue until it is empty.
func (f *fleet) order(ctx context.Context, customers int, orders []*order) *load {
	queue := make(chan *order, len(orders))
	for _, o := range orders {
		queue <- o
	}

	close(queue)

	l := &load{}

	for range customers {
		l.customers.Go(func() {
			for o := range queue {
				if err := f.runOrder(ctx, o); err != nil && ctx.Err() == nil {
					f.Errorf("%s, which is %s: %v", o.id, o.outcome, err)
				}

				l.done.Add(1)
			}
		})
	}

	return l
}

// runOrder creates an instance and deletes it if the planned outcome requires a deletion.
func (f *fleet) runOrder(ctx context.Context, o *order) error {
	created, err := f.send(ctx, http.MethodPut, harness.InstancePath(o.id)+harness.Incomplete, harness.Order(harness.PlanAWS),
		http.StatusAccepted, http.StatusOK)
	if err != nil {
		return err
	}

	o.record(created)

	switch o.outcome {
	case deletedImmediately:
	case deletedDuringCreation:
		if err := f.waitForCreation(ctx, o, o.polls); err != nil {
			return err
		}
	case stays, deletedWhenReady:
		if err := f.waitForCreation(ctx, o, 0); err != nil {
			return err
		}
	}

	if o.outcome == stays {
		return nil
	}

	return f.delete(ctx, o)
}

func (f *fleet) delete(ctx context.Context, o *order) error {
	deleted, err := f.send(ctx, http.MethodDelete, harness.DeletionPath(o.id, harness.PlanAWS), nil, http.StatusAccepted, http.StatusGone)
	if err != nil {
		return err
	}

	o.record(deleted)

	for {
		got, err := f.send(ctx, http.MethodGet, harness.InstancePath(o.id)+"/last_operation", nil, http.StatusOK)
		if err != nil || got.Text("state") == "succeeded" {
			return err
		}

		if got.Text("state") != "in progress" {
			return fmt.Errorf("the deletion ended with %v", got.Body)
		}

		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// waitForCreation polls until the creation has succeeded or the number of polls is reached. 0 means no limit.
func (f *fleet) waitForCreation(ctx context.Context, o *order, polls int) error {
	for poll := 1; ; poll++ {
		got, err := f.send(ctx, http.MethodGet, harness.InstancePath(o.id)+"/last_operation", nil, http.StatusOK)
		if err != nil {
			return err
		}

		switch state := got.Text("state"); {
		case state == "succeeded" || poll == polls:
			return nil
		case state != "in progress":
			return fmt.Errorf("the creation ended with %v", got.Body)
		}

		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func (o *order) record(accepted harness.Reply) {
	if id := accepted.Text("operation"); accepted.Status == http.StatusAccepted && !slices.Contains(o.accepted, id) {
		o.accepted = append(o.accepted, id)
	}
}

// pause waits for pollInterval. If the context ends earlier, it returns the context's error.
func pause(ctx context.Context) error {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// send sends an idempotent request. While a replica or its database is down, send repeats the request at the next replica. It
// returns an error if a response has a status that is not in want.
func (f *fleet) send(ctx context.Context, method, path string, body any, want ...int) (harness.Reply, error) {
	var got harness.Reply

	err := retry(ctx, func() (again bool, err error) {
		got, err = f.sendOnce(method, path, body)
		if err != nil || slices.Contains(want, got.Status) {
			return err != nil, err
		}

		return got.Status == http.StatusServiceUnavailable, fmt.Errorf("%s %s returned %d %v", method, path, got.Status, got.Body)
	})

	return got, err
}

// retry repeats an attempt until it succeeds or returns an error that is not retryable.
func retry(ctx context.Context, attempt func() (retryable bool, err error)) error {
	for deadline := time.Now().Add(harness.Patience); ; {
		retryable, err := attempt()

		switch {
		case err == nil || !retryable:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("still failing after %s: %w", harness.Patience, err)
		}

		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// sendOnce sends a request to the next ready replica of the broker.
func (f *fleet) sendOnce(method, path string, body any) (harness.Reply, error) {
	m := f.brokers.nextReady()
	if m == nil {
		return harness.Reply{}, fmt.Errorf("%s %s: no broker is ready", method, path)
	}

	return f.sendTo(m, method, path, body)
}

func (f *fleet) sendTo(m *member, method, path string, body any) (harness.Reply, error) {
	return newPlatform(f.T, "http://"+m.address).Try(method, path, body)
}
