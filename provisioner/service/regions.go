package service

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	// regionCheck is the interval between two searches for rows without a region. Replicas of the previous version insert such
	// rows during a rolling upgrade.
	regionCheck = time.Hour
	// regionBatch is the maximum number of rows in one query.
	regionBatch = 500
)

// Regions records the provider and the region of runtimes whose rows lack them, because an older version inserted the rows. Lists
// show these columns and filter by them. The values come from the sealed configuration.
type Regions struct {
	Runtimes *runtimes.Store
	Log      logrus.FieldLogger
}

// Part returns the lifecycle.Part that completes the rows when a replica starts and then every hour. All replicas can run it,
// because recording a region again has no effect.
func (r Regions) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "regions of runtimes", Every: regionCheck, Work: r.complete, Clock: clock.RealClock{}, Log: r.Log}.Part()
}

// complete fills the columns of all rows once. It skips rows whose configuration cannot be read, for example because a key was
// lost. The error contains the number of failed rows and the last cause.
func (r Regions) complete(ctx context.Context) error {
	var (
		unread int
		last   error
	)

	for after := ""; ; {
		ids, err := r.Runtimes.WithoutRegion(ctx, after, regionBatch)
		if err != nil {
			return err
		}

		for _, id := range ids {
			if err := r.completeOne(ctx, id); err != nil {
				unread, last = unread+1, err
			}
		}

		if len(ids) < regionBatch {
			break
		}

		after = ids[len(ids)-1]
	}

	if last != nil {
		return fmt.Errorf("recording the regions of runtimes: %d failed, the last one with: %w", unread, last)
	}

	return nil
}

// completeOne reads the configuration of a runtime and records its provider and region.
func (r Regions) completeOne(ctx context.Context, id string) error {
	runtime, err := r.Runtimes.Get(ctx, r.Runtimes.Reader(), id)
	if err != nil {
		return err
	}

	order, err := operation.OrderOf(runtime)
	if err != nil {
		return err
	}

	var provider, region string
	if order.ClusterConfig != nil && order.ClusterConfig.GardenerConfig != nil {
		provider, region = order.ClusterConfig.GardenerConfig.Provider, order.ClusterConfig.GardenerConfig.Region
	}

	return r.Runtimes.SetRegion(ctx, id, provider, region)
}
