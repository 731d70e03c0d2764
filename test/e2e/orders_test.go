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

// fate is the planned end of an instance.
type fate string

const (
	stays                 fate = "stays"
	deletedImmediately    fate = "deleted immediately"
	deletedDuringCreation fate = "deleted during its creation"
	deletedWhenReady      fate = "deleted when ready"
)

// pollPause is the interval at which a customer polls.
const pollPause = 300 * time.Millisecond

// order is an instance and its fate.
type order struct {
	id   string
	fate fate
	// polls is the number of polls before a deletion during the creation.
	polls int
	// accepted lists the operations that the broker accepted with 202.
	accepted []string
}

// newOrders draws orders with random fates.
func newOrders(random *rand.Rand, prefix string, count int) []*order {
	fates := []fate{stays, stays, deletedImmediately, deletedDuringCreation, deletedDuringCreation, deletedWhenReady}
	orders := make([]*order, 0, count)

	for i := range count {
		orders = append(orders, &order{
			id: fmt.Sprintf("%s-%03d", prefix, i), fate: fates[random.IntN(len(fates))], polls: 1 + random.IntN(12),
		})
	}

	return orders
}

// load is a group of concurrent customers, each of which executes its orders in sequence.
type load struct {
	done      atomic.Int64
	customers sync.WaitGroup
}

// order starts the customers.
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
				if err := f.carryOut(ctx, o); err != nil && ctx.Err() == nil {
					f.Errorf("%s, which is %s: %v", o.id, o.fate, err)
				}

				l.done.Add(1)
			}
		})
	}

	return l
}

// carryOut creates an instance and executes its fate.
func (f *fleet) carryOut(ctx context.Context, o *order) error {
	created, err := f.insist(ctx, http.MethodPut, harness.InstancePath(o.id)+harness.Incomplete, harness.Order(harness.PlanAWS),
		http.StatusAccepted, http.StatusOK)
	if err != nil {
		return err
	}

	o.note(created)

	switch o.fate {
	case deletedImmediately:
	case deletedDuringCreation:
		if err := f.watch(ctx, o, o.polls); err != nil {
			return err
		}
	case stays, deletedWhenReady:
		if err := f.watch(ctx, o, 0); err != nil {
			return err
		}
	}

	if o.fate == stays {
		return nil
	}

	return f.delete(ctx, o)
}

func (f *fleet) delete(ctx context.Context, o *order) error {
	deleted, err := f.insist(ctx, http.MethodDelete, harness.DeletionPath(o.id, harness.PlanAWS), nil, http.StatusAccepted, http.StatusGone)
	if err != nil {
		return err
	}

	o.note(deleted)

	for {
		got, err := f.insist(ctx, http.MethodGet, harness.InstancePath(o.id)+"/last_operation", nil, http.StatusOK, http.StatusGone)
		if err != nil || got.Status == http.StatusGone {
			return err
		}

		if got.Text("state") != "in progress" {
			return fmt.Errorf("the deletion ended with %v", got.Body)
		}

		if err := rest(ctx); err != nil {
			return err
		}
	}
}

// watch polls until the creation has succeeded, but at most the given number of times; 0 means no limit.
func (f *fleet) watch(ctx context.Context, o *order, polls int) error {
	for poll := 1; ; poll++ {
		got, err := f.insist(ctx, http.MethodGet, harness.InstancePath(o.id)+"/last_operation", nil, http.StatusOK)
		if err != nil {
			return err
		}

		switch state := got.Text("state"); {
		case state == "succeeded" || poll == polls:
			return nil
		case state != "in progress":
			return fmt.Errorf("the creation ended with %v", got.Body)
		}

		if err := rest(ctx); err != nil {
			return err
		}
	}
}

func (o *order) note(accepted harness.Reply) {
	if id := accepted.Text("operation"); accepted.Status == http.StatusAccepted && !slices.Contains(o.accepted, id) {
		o.accepted = append(o.accepted, id)
	}
}

// rest is the pause between two polls.
func rest(ctx context.Context) error {
	timer := time.NewTimer(pollPause)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// insist repeats an idempotent request until it gets a response. If a replica or its database is down, it sends the request to the next
// replica. Any status but the wanted ones is an error.
func (f *fleet) insist(ctx context.Context, method, path string, body any, want ...int) (harness.Reply, error) {
	var got harness.Reply

	err := persist(ctx, func() (again bool, err error) {
		got, err = f.ask(method, path, body)
		if err != nil || slices.Contains(want, got.Status) {
			return err != nil, err
		}

		return got.Status == http.StatusServiceUnavailable, fmt.Errorf("%s %s returned %d %v", method, path, got.Status, got.Body)
	})

	return got, err
}

// persist repeats try until it succeeds or returns a permanent error.
func persist(ctx context.Context, try func() (again bool, err error)) error {
	for deadline := time.Now().Add(harness.Patience); ; {
		again, err := try()

		switch {
		case err == nil || !again:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("still failing after %s: %w", harness.Patience, err)
		}

		if err := rest(ctx); err != nil {
			return err
		}
	}
}

// ask sends a request to the next broker that is ready.
func (f *fleet) ask(method, path string, body any) (harness.Reply, error) {
	m := f.brokers.pick()
	if m == nil {
		return harness.Reply{}, fmt.Errorf("%s %s: no broker is ready", method, path)
	}

	return f.askAt(m, method, path, body)
}

// askAt sends a request to the broker.
func (f *fleet) askAt(m *member, method, path string, body any) (harness.Reply, error) {
	return newPlatform(f.T, "http://"+m.address).Try(method, path, body)
}
