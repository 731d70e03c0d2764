package lifecycle_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

func TestEach(t *testing.T) {
	t.Parallel()

	const limit = 3

	var active, most, calls atomic.Int32

	items := make([]int, 50)
	if err := lifecycle.Each(limit, items, func(int) error {
		calls.Add(1)

		for now := active.Add(1); ; {
			if before := most.Load(); now <= before || most.CompareAndSwap(before, now) {
				break
			}
		}

		defer active.Add(-1)

		return nil
	}); err != nil || calls.Load() != 50 || most.Load() > limit || active.Load() != 0 {
		t.Errorf("got %v after %d calls, %d at once, %d active", err, calls.Load(), most.Load(), active.Load())
	}

	failure := errors.New("the third item")
	calls.Store(0)

	if err := lifecycle.Each(1, []int{1, 2, 3, 4, 5}, func(item int) error {
		calls.Add(1)

		if item == 3 {
			return failure
		}

		return nil
	}); !errors.Is(err, failure) || calls.Load() != 3 {
		t.Errorf("got %v after %d calls, want no call after the failure", err, calls.Load())
	}
}
