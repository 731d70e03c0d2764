package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lib/pq"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
)

// TestNotifyReturnsAfterTheEnd checks that a service can stop while many Shoots change: notify must return when the
// context ends.
func TestNotifyReturnsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		waker := &shootWaker{changed: make(chan string, 1)}
		returned := make(chan struct{})

		go func() {
			defer close(returned)

			waker.notify(ctx, "c-first")
			waker.notify(ctx, "c-second")
		}()

		synctest.Wait()

		select {
		case <-returned:
			t.Error("notify does not block while the buffer is full, so changes are lost")
		default:
		}

		stop()
		<-returned
	})
}

// troubledStore returns each of its errors once, and records the events of later calls.
type troubledStore struct {
	errors []error
	woken  [][]string
}

func (s *troubledStore) Wake(_ context.Context, events []string, _ time.Time) (int64, error) {
	if len(s.errors) > 0 {
		err := s.errors[0]
		s.errors = s.errors[1:]

		return 0, err
	}

	s.woken = append(s.woken, events)

	return 1, nil
}

func TestShootChangesSurviveADatabaseOutage(t *testing.T) {
	crowded := &pq.Error{Code: "53300"}

	cases := map[string]struct {
		reason string
		errors []error
		want   [][]string
	}{
		"in order":    {"without errors, each change wakes its operations once", nil, [][]string{{"shoot c-first"}, {"shoot c-second"}}},
		"unavailable": {"the watch reports a change only once, so a failed wake is retried", []error{crowded, crowded}, [][]string{{"shoot c-first"}, {"shoot c-second"}}},
		"refused":     {"an error that a retry cannot fix must not block other changes", []error{&pq.Error{Code: "42P01"}}, [][]string{{"shoot c-second"}}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				store, woken, ended := &troubledStore{errors: c.errors}, 0, make(chan error)
				waker := &shootWaker{
					store: store, wake: func() { woken++ }, clock: clock.RealClock{}, log: logging.Discard(), changed: make(chan string, changes),
				}

				go func() { ended <- waker.run(ctx) }()

				waker.notify(ctx, "c-first")
				time.Sleep(2 * gather) // fake time
				waker.notify(ctx, "c-second")
				time.Sleep(time.Minute)
				stop()

				if err := <-ended; err != nil {
					t.Error(err)
				}

				if diff := cmp.Diff(c.want, store.woken); diff != "" || woken != len(c.want) {
					t.Errorf("%s: the engine was woken %d times, events -want +got:\n%s", c.reason, woken, diff)
				}
			})
		})
	}
}
