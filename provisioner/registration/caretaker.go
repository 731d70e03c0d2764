package registration

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	// careInterval is the interval between two runs.
	careInterval = 5 * time.Second
	// unsettledFor is how long an order may be retried before its unused registrations are removed.
	unsettledFor = time.Hour
	// holdFor blocks new attempts of an order while registrations of earlier ones are removed, for settleTimeout at most.
	holdFor       = 2 * time.Minute
	settleTimeout = time.Minute
	// failureBatch is the maximum number of failures that one run reports.
	failureBatch = 100
)

// Caretaker reports failed provisionings to Director and removes registrations that no runtime uses. It works from rows, so any
// replica can continue the work of another.
type Caretaker struct {
	Director Director
	Rows     Rows
	Clock    clock.WithTicker
	Log      logrus.FieldLogger
}

// Run calls Care at intervals until the context ends.
func (c Caretaker) Run(ctx context.Context) error {
	ticker := c.Clock.NewTicker(careInterval)
	defer ticker.Stop()

	for {
		if err := c.Care(ctx); err != nil && ctx.Err() == nil {
			c.Log.WithError(err).Warn("updating Director failed, trying again later")
		}

		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Care runs once.
func (c Caretaker) Care(ctx context.Context) error {
	return errors.Join(c.reportFailures(ctx), c.settle(ctx))
}

// reportFailures marks runtimes as failed whose provisioning has failed.
func (c Caretaker) reportFailures(ctx context.Context) error {
	failed, err := c.Rows.UnreportedFailures(ctx, failureBatch)
	if err != nil {
		return err
	}

	var wrong []error

	for _, registration := range failed {
		err := c.Director.Update(ctx, registration.Tenant, registration.RuntimeID, director.Change{Condition: director.Failed})

		// Director does not know the runtime or refuses the change: trying again would not help.
		if err != nil && failure.MappingOf(failure.KindOf(err)).Retry {
			wrong = append(wrong, err)

			continue
		}

		if err != nil {
			c.Log.WithError(err).WithField(logging.RuntimeID, registration.RuntimeID).
				Warn("Director refused the report of a failed provisioning")
		}

		wrong = append(wrong, c.Rows.FailureReported(ctx, registration))
	}

	return errors.Join(wrong...)
}

// settle settles all registrations that are old enough.
func (c Caretaker) settle(ctx context.Context) error {
	for {
		now := c.Clock.Now()

		registration, err := c.Rows.HoldRegistration(ctx, now.Add(-unsettledFor), now, now.Add(holdFor))
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}

		if err == nil {
			err = c.settleOne(ctx, registration)
		}

		if err != nil {
			return err
		}
	}
}

// settleOne unregisters the runtimes of an order that do not exist.
func (c Caretaker) settleOne(ctx context.Context, registration runtimes.Registration) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()

	found, err := c.Director.Find(ctx, registration.Tenant, LabelOrder, registration.Label)
	if err != nil && !errors.Is(err, director.ErrTenantUnknown) {
		return err
	}

	for _, runtime := range found {
		live, err := alive(ctx, c.Rows, runtime.ID)
		if err != nil {
			return err
		}

		if live {
			continue
		}

		c.Log.WithField(logging.RuntimeID, runtime.ID).Warn("unregistering a runtime that was never accepted")

		if err := c.Director.Unregister(ctx, registration.Tenant, runtime.ID); err != nil {
			return err
		}
	}

	return c.Rows.SettleRegistration(ctx, registration)
}
