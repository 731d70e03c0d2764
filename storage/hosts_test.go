package storage_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// TestSearchesDuringAFailover calls a database without a primary from many goroutines, which repeat each failed call immediately.
func TestSearchesDuringAFailover(t *testing.T) {
	const (
		callers  = 50
		failover = 10 * time.Second
	)

	synctest.Test(t, func(t *testing.T) {
		var (
			searches atomic.Int32
			group    sync.WaitGroup
		)

		promoted := time.Now().Add(failover)
		connect := storage.Searching(func(context.Context) error {
			searches.Add(1)
			time.Sleep(10 * time.Millisecond)

			if time.Now().Before(promoted) {
				return storage.ErrNoPrimary
			}

			return nil
		})

		for range callers {
			group.Go(func() {
				for connect(t.Context()) != nil {
					time.Sleep(time.Millisecond)
				}
			})
		}

		group.Wait()

		// All callers search once before the first failure, and once more after the failover. In between, one of them searches every 510 ms.
		if got, want := searches.Load(), int32(2*callers+failover/(510*time.Millisecond)+2); got > want {
			t.Errorf("the callers have searched %d times, want at most %d", got, want)
		}

		if took := time.Since(promoted); took > time.Second {
			t.Errorf("the last caller has found the primary after %s", took)
		}
	})
}

// TestCanceledSearch cancels the context of the call that searches, and of one that waits for it. Others search for themselves.
func TestCanceledSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found atomic.Bool

		connect := storage.Searching(func(ctx context.Context) error {
			if found.Load() {
				return nil
			}

			select {
			case <-ctx.Done():
				found.Store(true)
			case <-time.After(time.Minute):
			}

			return storage.ErrNoPrimary
		})

		if err := connect(t.Context()); !errors.Is(err, storage.ErrNoPrimary) {
			t.Errorf("the first search returns %v", err)
		}

		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		var group sync.WaitGroup

		for range 2 {
			group.Go(func() {
				if err := connect(impatient); !errors.Is(err, storage.ErrNoPrimary) {
					t.Errorf("a canceled search returns %v", err)
				}
			})
		}

		synctest.Wait()
		group.Go(func() {
			if err := connect(t.Context()); err != nil {
				t.Errorf("the search after canceled ones returns %v", err)
			}
		})
		group.Wait()
	})
}
