package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	delivery "github.com/environment-broker/environment-broker/broker/webhooks"
	"github.com/environment-broker/environment-broker/internal/clients/webhook"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

// errKilled ends a replica: its later writes and calls fail, too.
var errKilled = errors.New("the replica was killed")

// mortal is the store and the client of a replica that dies at one of its writes and calls: number at, before or after the write or call
// takes effect.
type mortal struct {
	delivery.Store

	send func(context.Context, webhook.Message) error

	mutex  sync.Mutex
	number int
	at     int
	after  bool
	dead   bool
}

// run runs a write or call unless the replica is dead.
func (m *mortal) run(call func() error) error {
	m.mutex.Lock()
	m.number++
	dies := m.number == m.at
	m.dead = m.dead || dies
	dead := m.dead
	m.mutex.Unlock()

	if dead && (!dies || !m.after) {
		return errKilled
	}

	err := call()
	if dies {
		return errKilled
	}

	return err
}

func (m *mortal) Hold(ctx context.Context, id, owner string, now, until time.Time) (held bool, err error) {
	err = m.run(func() error {
		held, err = m.Store.Hold(ctx, id, owner, now, until)

		return err
	})

	return held, err
}

func (m *mortal) ReturnLease(ctx context.Context, id, owner string) error {
	return m.run(func() error { return m.Store.ReturnLease(ctx, id, owner) })
}

func (m *mortal) Add(ctx context.Context, webhook webhooks.Webhook, owner string, events []eventlog.Event, last int64, now time.Time) (added bool, err error) {
	err = m.run(func() error {
		added, err = m.Store.Add(ctx, webhook, owner, events, last, now)

		return err
	})

	return added, err
}

func (m *mortal) Attempt(ctx context.Context, delivery webhooks.Delivery, now time.Time) (begun webhooks.Delivery, err error) {
	err = m.run(func() error {
		begun, err = m.Store.Attempt(ctx, delivery, now)

		return err
	})

	return begun, err
}

func (m *mortal) Fail(ctx context.Context, delivery webhooks.Delivery) error {
	return m.run(func() error { return m.Store.Fail(ctx, delivery) })
}

func (m *mortal) Deliver(ctx context.Context, delivery webhooks.Delivery, now time.Time) (confirmed bool, err error) {
	err = m.run(func() error {
		confirmed, err = m.Store.Deliver(ctx, delivery, now)

		return err
	})

	return confirmed, err
}

func (m *mortal) Disable(ctx context.Context, id, reason string, now time.Time) error {
	return m.run(func() error { return m.Store.Disable(ctx, id, reason, now) })
}

func (m *mortal) Send(ctx context.Context, message webhook.Message) error {
	return m.run(func() error { return m.send(ctx, message) })
}

// TestKilledReplica kills the replica before and after each write and each call. Another replica takes over when the lease has
// expired. Each event arrives at least once, and events of an instance in their order. Only events that were being sent arrive
// twice.
func TestKilledReplica(t *testing.T) {
	const fewest = 16 // lease, deliveries, and begin, call and end of three events and a failure, and the end of the lease

	for at := 1; ; at++ {
		reached := false

		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d after=%t", at, after), func(t *testing.T) {
				f := newFixture(t, storagetest.SQLite(t))

				var once sync.Mutex

				failed := false
				receiver := f.add("hook", eventlog.Filter{}, func(operation string, _ http.Header) int {
					once.Lock()
					defer once.Unlock()

					if operation == "1b" && !failed {
						failed = true

						return http.StatusServiceUnavailable
					}

					return http.StatusOK
				})

				f.accept("one", "1a", "1b", "1c")
				f.accept("two", "2a", "2b")

				victim := &mortal{Store: f.store, send: f.client.Send, at: at, after: after}
				replica := f.replica(victim, victim.Send)

				for range 2 {
					f.deliver(replica)
					f.clock.Step(6 * time.Second) // until the repetition
				}

				reached = victim.dead

				for range 2 {
					f.clock.Step(time.Minute)
					f.deliver(f.replica(f.store, f.client.Send))
				}

				got := receiver.all(t)
				for instance, want := range map[byte][]string{'1': {"1a", "1b", "1c"}, '2': {"2a", "2b"}} {
					own := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return id[0] != instance })
					if distinct := slices.Compact(slices.Clone(own)); !slices.Equal(distinct, want) || len(own) > len(want)+2 {
						t.Errorf("received %v", got)
					}
				}

				if left := append(f.undelivered("hook", false), f.undelivered("hook", true)...); len(left) != 0 {
					t.Errorf("%+v is left", left)
				}

				f.wantNoSecrets("hook")
			})
		}

		if !reached {
			if at < fewest {
				t.Errorf("only %d writes and calls", at-1)
			}

			return
		}
	}
}
