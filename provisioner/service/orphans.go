package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	// orphanCheck is the interval between two checks for orphans.
	orphanCheck = 10 * time.Minute
	// orphanBatch is the maximum number of runtimes in one query. It is far below the parameter limits of both supported databases.
	orphanBatch = 500
)

// Orphans removes the Shoots of runtimes that are recorded as deleted, and the objects that belong to these Shoots. Such an
// orphan appears only if a request to create a Shoot takes effect after the runtime was removed. The reason is either a replica
// that froze before it sent the request, or an API server that committed the request after its client had given up. An orphaned
// cluster costs money until it is removed.
type Orphans struct {
	Runtimes *runtimes.Store
	Shoots   *gardener.Client
	Log      logrus.FieldLogger
}

// Part returns the lifecycle.Part that removes orphans when a replica starts and then every ten minutes. All replicas can run it,
// because a repeated deletion has no effect.
func (o Orphans) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "orphan remover", Every: orphanCheck, Work: o.remove, Clock: clock.RealClock{}, Log: o.Log}.Part()
}

// remove removes all orphans once. If a deletion fails, it continues with the other orphans, and finally returns all errors.
func (o Orphans) remove(ctx context.Context) error {
	return errors.Join(o.removeShoots(ctx), o.tidy(ctx))
}

// tidy removes objects of deleted runtimes, such as ConfigMaps, that remain after the Shoot is gone.
func (o Orphans) tidy(ctx context.Context) error {
	ids, err := o.Shoots.ConfigMapOwners(ctx)
	if err != nil {
		return err
	}

	return o.eachDeleted(ctx, ids, func(id string) error { return o.Shoots.Tidy(ctx, id, nil) })
}

// removeShoots deletes the Shoots of deleted runtimes. It logs each Shoot as an error, because operators should find out why a
// request took effect so late.
func (o Orphans) removeShoots(ctx context.Context) error {
	owned, err := o.Shoots.Owned(ctx)
	if err != nil {
		return err
	}

	names, ids := make(map[string]string, len(owned)), make([]string, 0, len(owned))
	for _, shoot := range owned {
		names[shoot.RuntimeID] = shoot.Name
		ids = append(ids, shoot.RuntimeID)
	}

	return o.eachDeleted(ctx, ids, func(id string) error {
		o.Log.WithFields(logrus.Fields{logging.RuntimeID: id, logging.Shoot: names[id]}).
			Error("removing a cluster whose runtime is recorded as deleted")

		return o.Shoots.Delete(ctx, names[id], id)
	})
}

// eachDeleted calls the given function for each of the given runtimes that is recorded as deleted. It returns the errors of all
// calls, unless the database does not respond: then it stops and returns only that error.
func (o Orphans) eachDeleted(ctx context.Context, ids []string, remove func(id string) error) error {
	var failed []error

	for batch := range slices.Chunk(ids, orphanBatch) {
		deleted, err := o.Runtimes.DeletedAmong(ctx, batch)
		if err != nil {
			return err
		}

		for _, id := range deleted {
			failed = append(failed, remove(id))
		}
	}

	return errors.Join(failed...)
}
