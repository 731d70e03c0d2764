package child

import (
	"context"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/await"
)

// WaitReady asks the probe again and again until it returns nil, the process ends or ctx does.
func (c *Child) WaitReady(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.exited:
			cancel(c.Err())
		case <-ctx.Done():
		}
	}()
	return await.Until(ctx, c.spec.Name+" is ready (its log is "+c.spec.Log+")", probe)
}
