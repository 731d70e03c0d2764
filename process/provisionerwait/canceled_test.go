package provisionerwait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// polling polls in a separate goroutine and sends the error on the returned channel.
func (f fixture) polling(ctx context.Context, tenant, id string) <-chan error {
	ended := make(chan error, 1)

	go func() {
		_, _, err := f.poller.Poll(ctx, tenant, id)
		ended <- err
	}()

	synctest.Wait()

	return ended
}

// wantCanceled fails the test unless the poll has ended because of its context.
func (f fixture) wantCanceled(what string, ended <-chan error) {
	f.Helper()
	synctest.Wait()

	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) || !failure.Is(err, failure.Transient) || failure.Of(err).Component != failure.ComponentProvisioner {
			f.Errorf("%s: got %v", what, err)
		}
	default:
		f.Fatalf("%s: the poll still waits", what)
	}
}

func TestACanceledPollLeavesTheCollection(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.polls("tenant", "first")

		ctx, cancel := context.WithCancel(f.Context())
		leaves, stays := f.polling(ctx, "tenant", "leaves"), f.polling(f.Context(), "tenant", "stays")

		cancel()
		f.wantCanceled("a poll that waits for its request", leaves)

		if err := <-stays; err != nil {
			f.Error(err)
		}

		f.wantRequests("the request does not ask for an operation that has left", []string{"first"}, []string{"stays"})
	})
}

func TestARequestOutlivesThePollThatSentIt(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.takes = time.Minute
		f.expect("tenant", 0, "stays")

		ctx, cancel := context.WithCancel(f.Context())
		leaves, stays := f.polling(ctx, "tenant", "leaves"), f.polling(f.Context(), "tenant", "stays")

		cancel()
		f.wantCanceled("the poll that has sent the request", leaves)

		if err := <-stays; err != nil {
			f.Error(err)
		}

		f.wantRequests("both polls share a request", []string{"leaves", "stays"})
	})
}

func TestARequestWithoutPollsIsCanceled(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.takes = time.Minute
		f.expect("tenant", 0, "two", "three", "four")

		ctx, cancel := context.WithCancel(f.Context())
		one, two := f.polling(ctx, "tenant", "one"), f.polling(ctx, "tenant", "two")

		cancel()
		f.wantCanceled("the first poll", one)
		f.wantCanceled("the second poll", two)

		if err := f.all()[0].canceled; !errors.Is(err, context.Canceled) {
			f.Errorf("the request ended with %v, want a cancellation", err)
		}

		f.takes = 0
		time.Sleep(spacing)

		f.polls("tenant", "three")
		f.polls("tenant", "four")
		f.wantRequests("a canceled request is repeated", []string{"four", "one", "three", "two"}, []string{"four", "three"})
	})
}
