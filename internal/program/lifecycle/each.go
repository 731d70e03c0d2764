package lifecycle

import (
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Each calls work for each item, with at most limit concurrent calls, and waits until all calls have ended. After an error, it
// does not start further calls. It returns the first error.
func Each[T any](limit int, items []T, work func(item T) error) error {
	var (
		group  errgroup.Group
		failed atomic.Bool
	)

	group.SetLimit(limit)

	for _, item := range items {
		group.Go(func() error {
			if failed.Load() {
				return nil
			}

			err := work(item)
			if err != nil {
				failed.Store(true)
			}

			return err
		})
	}

	return group.Wait() //nolint:wrapcheck // the error comes from work
}
