package service

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestNobodyWaitsForAWakerThatHasEnded: a service that stops while many Shoots change comes to its end.
func TestNobodyWaitsForAWakerThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		waker := &shootWaker{changed: make(chan string, 1)}
		told := make(chan struct{})

		go func() {
			defer close(told)

			waker.tell(ctx, "c-first")
			waker.tell(ctx, "c-second")
		}()

		synctest.Wait()

		select {
		case <-told:
			t.Error("the watch does not wait while there is no room, and changes are lost")
		default:
		}

		stop()
		<-told
	})
}
