package project

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/await"
)

// within is how long the admission plugins may take to learn of the objects.
const within = time.Minute

// Prepare applies the objects and waits until the garden accepts a Shoot. The admission plugins of Gardener learn of new objects a
// moment after they were made, so the first attempts may be refused.
func Prepare(ctx context.Context, admin client.Client, project string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := await.Until(ctx, "the objects of the garden are applied", func(ctx context.Context) error {
		return fakegarden.Seed(ctx, admin, project)
	}); err != nil {
		return err
	}
	if err := grant(ctx, admin, project); err != nil {
		return err
	}
	return await.Until(ctx, "a Shoot is accepted", func(ctx context.Context) error {
		return admin.Create(ctx, sample(project), client.DryRunAll)
	})
}
