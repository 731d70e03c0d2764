package expiry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
)

const (
	// every is how often the replicas look for instances whose time is over.
	every = 5 * time.Minute
	// retryAfter is how long a suspension that failed is left alone.
	retryAfter = time.Hour
	// pageSize is how many instances are looked at together.
	pageSize = 100

	whyOver = "the time of the instance is over"
)

// Part looks again and again for instances whose time is over. Any number of replicas may do so: of those that find the same instance
// one begins its suspension.
func (e Expirer) Part(clock clock.WithTicker, log logrus.FieldLogger) lifecycle.Part {
	return lifecycle.Periodic{
		Name: "expiry", Every: every, Clock: clock, Log: log,
		Work: e.ExpireDue,
	}.Part()
}

// ExpireDue has all instances expire whose time is over. One that cannot is told and does not hold up the others.
func (e Expirer) ExpireDue(ctx context.Context) error {
	var failed []error

	for after := ""; ; {
		ids, err := e.Instances.Expiring(ctx, e.Clock.Now(), after, pageSize)
		if err != nil || len(ids) == 0 {
			return errors.Join(append(failed, err)...)
		}

		for _, id := range ids {
			if err := e.expireDue(ctx, id); err != nil {
				failed = append(failed, fmt.Errorf("instance %s: %w", id, err))
			}
		}

		after = ids[len(ids)-1]
	}
}

func (e Expirer) expireDue(ctx context.Context, id string) error {
	past, err := e.Operations.OfInstance(ctx, e.DB.Reader(), id)
	if err != nil || failedLately(past, e.Clock.Now().Add(-retryAfter)) {
		return err
	}

	_, err = e.Expire(ctx, id, whyOver)
	if failure.Is(err, failure.Conflict) || failure.Is(err, failure.NotFound) || failure.Is(err, failure.Invalid) {
		return nil // it is being deleted, or its plan promises to last by now
	}

	return err
}
