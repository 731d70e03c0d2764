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
)

// fate is what becomes of an instance.
type fate string

const (
	stays           fate = "stays"
	deletedAtOnce   fate = "deleted at once"
	deletedMidway   fate = "deleted while it is created"
	deletedInTheEnd fate = "deleted once it is there"
)

// pollPause is how often a customer asks for the last operation.
const pollPause = 300 * time.Millisecond

// order is an instance from its order to its end.
type order struct {
	id   string
	fate fate
	// polls is after how many looks it is deleted midway.
	polls int
	// accepted are the operations that were answered with 202.
	accepted []string
}

// newOrders draws the fates of instances.
func newOrders(random *rand.Rand, prefix string, count int) []*order {
	fates := []fate{stays, stays, deletedAtOnce, deletedMidway, deletedMidway, deletedInTheEnd}
	orders := make([]*order, 0, count)

	for i := range count {
		orders = append(orders, &order{
			id: fmt.Sprintf("%s-%03d", prefix, i), fate: fates[random.IntN(len(fates))], polls: 1 + random.IntN(12),
		})
	}

	return orders
}

// load is customers who carry out orders, each one after the other.
type load struct {
	done      atomic.Int64
	customers sync.WaitGroup
}

// begin has customers carry out the orders.
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

// carryOut takes an instance to its end.
func (f *fleet) carryOut(ctx context.Context, o *order) error {
	created, err := f.insist(ctx, http.MethodPut, instancePath(o.id)+"?accepts_incomplete=true", orderOf(planAWS),
		http.StatusAccepted, http.StatusOK)
	if err != nil {
		return err
	}

	o.note(created)

	switch o.fate {
	case deletedAtOnce:
	case deletedMidway:
		if err := f.watch(ctx, o, o.polls); err != nil {
			return err
		}
	case stays, deletedInTheEnd:
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
	deleted, err := f.insist(ctx, http.MethodDelete, removalPath(o.id, planAWS), nil, http.StatusAccepted, http.StatusGone)
	if err != nil {
		return err
	}

	o.note(deleted)

	for {
		got, err := f.insist(ctx, http.MethodGet, instancePath(o.id)+"/last_operation", nil, http.StatusOK, http.StatusGone)
		if err != nil || got.Status == http.StatusGone {
			return err
		}

		if got.text("state") != "in progress" {
			return fmt.Errorf("its deletion ended with %v", got.Body)
		}

		if err := rest(ctx); err != nil {
			return err
		}
	}
}

// watch polls until the creation has succeeded, or so many times; 0 for no limit.
func (f *fleet) watch(ctx context.Context, o *order, polls int) error {
	for poll := 1; ; poll++ {
		got, err := f.insist(ctx, http.MethodGet, instancePath(o.id)+"/last_operation", nil, http.StatusOK)
		if err != nil {
			return err
		}

		switch state := got.text("state"); {
		case state == "succeeded" || poll == polls:
			return nil
		case state != "in progress":
			return fmt.Errorf("its creation ended with %v", got.Body)
		}

		if err := rest(ctx); err != nil {
			return err
		}
	}
}

func (o *order) note(accepted answer) {
	if id := accepted.text("operation"); accepted.Status == http.StatusAccepted && !slices.Contains(o.accepted, id) {
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

// insist sends a request until it is answered: each of those here may be repeated. Where a replica is gone or its database is away, the
// next one is asked. Any other answer than those that are wanted is an error.
func (f *fleet) insist(ctx context.Context, method, path string, body any, want ...int) (answer, error) {
	var got answer

	err := persist(ctx, func() (again bool, err error) {
		got, err = f.ask(method, path, body)
		if err != nil || slices.Contains(want, got.Status) {
			return err != nil, err
		}

		return got.Status == http.StatusServiceUnavailable, fmt.Errorf("%s %s answered %d %v", method, path, got.Status, got.Body)
	})

	return got, err
}

// persist tries until it succeeds, or fails in a way that is no reason to try again.
func persist(ctx context.Context, try func() (again bool, err error)) error {
	for deadline := time.Now().Add(patience); ; {
		again, err := try()

		switch {
		case err == nil || !again:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("no other answer within %s: %w", patience, err)
		}

		if err := rest(ctx); err != nil {
			return err
		}
	}
}

// ask sends a request to the next broker that is ready.
func (f *fleet) ask(method, path string, body any) (answer, error) {
	m := f.brokers.pick()
	if m == nil {
		return answer{}, fmt.Errorf("%s %s: no broker is ready", method, path)
	}

	return f.askAt(m, method, path, body)
}

// askAt sends a request to the broker.
func (f *fleet) askAt(m *member, method, path string, body any) (answer, error) {
	return platform{TB: f.T, url: "http://" + m.address, user: user, password: password}.try(method, path, body)
}
