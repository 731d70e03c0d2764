package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	// orphanCheck is the interval between two checks.
	orphanCheck = 10 * time.Minute
	// orphanBatch is the number of runtimes in one query.
	orphanBatch = 500
)

// orphanRemover removes Shoots whose runtime is recorded as deleted. They exist only if an order took effect late: the request of
// a frozen replica, or a commit of the API server whose answer was lost.
type orphanRemover struct {
	runtimes *runtimes.Store
	shoots   *gardener.Client
	clock    clock.WithTicker
	log      logrus.FieldLogger
}

// RemoveOrphans removes orphans, at once and then every ten minutes, until the context ends.
func RemoveOrphans(ctx context.Context, runtimes *runtimes.Store, shoots *gardener.Client, log logrus.FieldLogger) error {
	return orphanRemover{runtimes: runtimes, shoots: shoots, clock: clock.RealClock{}, log: log}.run(ctx)
}

// run removes orphans until the context ends.
func (o orphanRemover) run(ctx context.Context) error {
	ticker := o.clock.NewTicker(orphanCheck)
	defer ticker.Stop()

	for {
		if err := o.check(ctx); err != nil && ctx.Err() == nil {
			o.log.WithError(err).Warn("checking for orphaned clusters failed")
		}

		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// check removes orphaned Shoots and orphaned objects of Shoots. It continues if one of them cannot be removed.
func (o orphanRemover) check(ctx context.Context) error {
	return errors.Join(o.removeShoots(ctx), o.tidy(ctx))
}

// tidy removes objects, such as ConfigMaps, whose runtime is deleted and whose Shoot is gone.
func (o orphanRemover) tidy(ctx context.Context) error {
	ids, err := o.shoots.ConfigMapOwners(ctx)
	if err != nil {
		return err
	}

	var left []error

	for batch := range slices.Chunk(ids, orphanBatch) {
		gone, err := o.runtimes.DeletedAmong(ctx, batch)
		if err != nil {
			return err
		}

		for _, id := range gone {
			left = append(left, o.shoots.Tidy(ctx, id, nil))
		}
	}

	return errors.Join(left...)
}

// removeShoots deletes Shoots whose runtime is deleted. It logs each as an error, because an orphan means that an order took
// effect late.
func (o orphanRemover) removeShoots(ctx context.Context) error {
	owned, err := o.shoots.Owned(ctx)
	if err != nil {
		return err
	}

	var left []error

	for batch := range slices.Chunk(owned, orphanBatch) {
		names := make(map[string]string, len(batch))
		ids := make([]string, 0, len(batch))

		for _, shoot := range batch {
			names[shoot.RuntimeID] = shoot.Name
			ids = append(ids, shoot.RuntimeID)
		}

		gone, err := o.runtimes.DeletedAmong(ctx, ids)
		if err != nil {
			return err
		}

		for _, id := range gone {
			o.log.WithFields(logrus.Fields{logging.RuntimeID: id, logging.Shoot: names[id]}).
				Error("removing a cluster that outlived its runtime")

			left = append(left, o.shoots.Delete(ctx, names[id], id))
		}
	}

	return errors.Join(left...)
}
