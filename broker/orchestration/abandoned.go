package orchestration

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// abandonedEvery is the time between two searches for orchestrations without a conductor.
	abandonedEvery = time.Minute

	textAbandoned = "The operation that starts the upgrades has failed, so no more upgrades start. Retry the orchestration to continue it"
	textCanceled  = "the orchestration was canceled"
)

// EndAbandoned ends the orchestrations whose conductors have failed, and returns their IDs. A conductor fails only because of a
// defect, or if no replica has started it in time. Upgrades in progress run to completion. A retry continues the orchestration.
func (c Conductor) EndAbandoned(ctx context.Context) (ended []string, err error) {
	unfinished, err := c.Orchestrations.Unfinished(ctx)
	if err != nil {
		return nil, err
	}

	var problems []error

	for _, id := range unfinished {
		abandoned, err := c.endAbandoned(ctx, id)
		if abandoned {
			ended = append(ended, id)
		}

		problems = append(problems, err)
	}

	return ended, errors.Join(problems...)
}

// endAbandoned ends the orchestration unless it has a conductor. It checks again after it has locked the orchestration, because a
// retry may have added a conductor in the meantime.
func (c Conductor) endAbandoned(ctx context.Context, id string) (abandoned bool, err error) {
	if conducted, err := c.Orchestrations.HasConductor(ctx, c.DB.Reader(), id); err != nil || conducted {
		return false, err
	}

	err = c.DB.InTx(ctx, func(tx storage.Tx) error {
		orchestration, err := c.Orchestrations.Lock(ctx, tx, id)
		if err != nil || orchestration.State.Ended() {
			return err
		}

		if conducted, err := c.Orchestrations.HasConductor(ctx, tx, id); err != nil || conducted {
			return err
		}

		abandoned = true

		if orchestration.State != environment.OrchestrationCanceling {
			return c.Orchestrations.SetState(ctx, tx, id, environment.OrchestrationFailed, textAbandoned, c.Clock.Now())
		}

		if err := c.Orchestrations.CancelPending(ctx, tx, id, textCanceled); err != nil {
			return err
		}

		return c.Orchestrations.SetState(ctx, tx, id, environment.OrchestrationCanceled, orchestration.Description, c.Clock.Now())
	})

	return abandoned && err == nil, err
}

// Part returns the lifecycle.Part that calls EndAbandoned and ExpirePlans every minute.
func (c Conductor) Part(clock clock.WithTicker, log logrus.FieldLogger) lifecycle.Part {
	return lifecycle.Periodic{
		Name: "end of abandoned orchestrations and old plans", Every: abandonedEvery, Clock: clock, Log: log,
		Work: func(ctx context.Context) error {
			ended, err := c.EndAbandoned(ctx)
			for _, id := range ended {
				log.WithField("orchestration_id", id).Error("an orchestration has ended because its conductor has failed")
			}

			return errors.Join(err, c.ExpirePlans(ctx))
		},
	}.Part()
}
