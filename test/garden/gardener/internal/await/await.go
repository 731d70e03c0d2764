// Package await waits until something has come true, and says what it was and why it is not true yet when the wait ends before.
package await

import (
	"context"
	"fmt"
	"time"
)

const interval = 50 * time.Millisecond

// Until asks the probe again and again until it returns nil or ctx ends. what completes the sentence "wait until …".
func Until(ctx context.Context, what string, probe func(context.Context) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w; last: %w", what, context.Cause(ctx), err)
		}
	}
}
