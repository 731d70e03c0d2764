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
	// careInterval is how often is looked for what is to be told or removed.
	careInterval = 5 * time.Second
	// unsettledFor is how long an order may be tried until what it has registered and does not use is removed.
	unsettledFor = time.Hour
	// holdFor keeps tries of an order away while what earlier ones have left is removed, which takes settleTimeout at most.
	holdFor       = 2 * time.Minute
	settleTimeout = time.Minute
	// toldAtOnce bounds how many failures are told in a row.
	toldAtOnce = 100
)

// Caretaker tells Director of provisionings that have failed, and removes what was registered and is no runtime. It works from rows:
// what one replica leaves undone, another one does.
type Caretaker struct {
	Director Director
	Rows     Rows
	Clock    clock.WithTicker
	Log      logrus.FieldLogger
}

// Run looks after registrations until the context ends.
func (c Caretaker) Run(ctx context.Context) error {
	ticker := c.Clock.NewTicker(careInterval)
	defer ticker.Stop()

	for {
		if err := c.Care(ctx); err != nil && ctx.Err() == nil {
			c.Log.WithError(err).Warn("Director could not be told all that it should be, it is told later")
		}

		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Care does what is to be done now.
func (c Caretaker) Care(ctx context.Context) error {
	return errors.Join(c.tellFailures(ctx), c.settle(ctx))
}

// tellFailures has Director show as failed what was not provisioned.
func (c Caretaker) tellFailures(ctx context.Context) error {
	failed, err := c.Rows.UnreportedFailures(ctx, toldAtOnce)
	if err != nil {
		return err
	}

	var wrong []error

	for _, registration := range failed {
		err := c.Director.Update(ctx, registration.Tenant, registration.RuntimeID, director.Change{Condition: director.Failed})

		// One that Director does not know, or whose change it refuses, stays like that.
		if err != nil && failure.MappingOf(failure.KindOf(err)).Retry {
			wrong = append(wrong, err)

			continue
		}

		if err != nil {
			c.Log.WithError(err).WithField(logging.RuntimeID, registration.RuntimeID).Warn("Director takes no word of a failed provisioning")
		}

		wrong = append(wrong, c.Rows.FailureReported(ctx, registration))
	}

	return errors.Join(wrong...)
}

// settle ends registrations that are old enough, one after the other.
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

// settleOne unregisters what the order has registered and no runtime stands for.
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

		c.Log.WithField(logging.RuntimeID, runtime.ID).Warn("a runtime that was registered in vain is unregistered")

		if err := c.Director.Unregister(ctx, registration.Tenant, runtime.ID); err != nil {
			return err
		}
	}

	return c.Rows.SettleRegistration(ctx, registration)
}
