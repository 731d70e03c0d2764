package registration

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	// careInterval is the interval between two runs of Care.
	careInterval = 5 * time.Second
	// unsettledFor is the minimum age at which an unused registration is removed. Until then, a client can repeat its order, and
	// the new attempt uses the registration.
	unsettledFor = time.Hour
	// holdFor is how long new attempts at an order are blocked while registrations of earlier attempts are removed. It is longer
	// than settleTimeout, so the replica that removes the registrations finishes or gives up before a new attempt can register.
	holdFor       = 2 * time.Minute
	settleTimeout = time.Minute
	// failureBatch is the maximum number of failed provision operations that one run reports.
	failureBatch = 100
)

// Caretaker reports failed provision operations to Director and removes registrations that no runtime uses. The database records
// the pending work, so any replica can continue it after a crash. All fields are required.
type Caretaker struct {
	Director Director
	Rows     *runtimes.Store
	// OfRuntime returns the name of the runtime's Shoot, or an empty string if there is none.
	OfRuntime func(ctx context.Context, runtimeID string) (string, error)
	Clock     clock.WithTicker
	Log       logrus.FieldLogger
}

// Part returns the lifecycle.Part that calls Care every careInterval. It logs errors and never fails.
func (c Caretaker) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "registration cleanup", Every: careInterval, Work: c.Care, Clock: c.Clock, Log: c.Log}.Part()
}

// Care reports failed provision operations and removes unused registrations. It does both even if one of them fails, and returns
// the joined errors.
func (c Caretaker) Care(ctx context.Context) error {
	return errors.Join(c.reportFailures(ctx), c.settle(ctx))
}

// reportFailures sets the Failed condition in Director for runtimes whose provisioning has failed. It records a failure as
// reported when Director has accepted the report or rejected it permanently.
func (c Caretaker) reportFailures(ctx context.Context) error {
	failed, err := c.Rows.UnreportedFailures(ctx, failureBatch)
	if err != nil {
		return err
	}

	var wrong []error

	for _, registration := range failed {
		err := c.Director.Update(ctx, registration.Tenant, registration.RuntimeID, director.Change{Condition: director.Failed})

		if err != nil && failure.MappingOf(failure.KindOf(err)).Retry {
			wrong = append(wrong, err)

			continue
		}

		// Director does not have the runtime or rejects the change. Another attempt would also fail, so the failure is recorded
		// as reported.
		if err != nil {
			c.Log.WithError(err).WithField(logging.RuntimeID, registration.RuntimeID).
				Warn("Director rejected the report of a failed provisioning; it is not sent again")
		}

		wrong = append(wrong, c.Rows.FailureReported(ctx, registration))
	}

	return errors.Join(wrong...)
}

// settle calls settleOne for each registration that is older than unsettledFor, and stops at the first error. Before each call,
// it puts a hold on the registration, which blocks other replicas and new attempts at the order.
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

// settleOne unregisters all runtimes that have the order's label in Director but are missing from the database or recorded there
// as deleted. It then records the registration as settled. If Director does not know the tenant, there is nothing to unregister.
// A runtime that still has a Shoot stays registered: its row may have been lost with a part of the database, and package
// reconcile can restore it.
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

		shoot, err := c.OfRuntime(ctx, runtime.ID)
		if err != nil {
			return err
		}

		if shoot != "" {
			c.Log.WithFields(logrus.Fields{logging.RuntimeID: runtime.ID, logging.Shoot: shoot}).
				Error("a registered runtime has a Shoot but no database record: run 'ebctl reconcile'")

			continue
		}

		c.Log.WithField(logging.RuntimeID, runtime.ID).Warn("unregistering a runtime whose order was never accepted")

		if err := c.Director.Unregister(ctx, registration.Tenant, runtime.ID); err != nil {
			return err
		}
	}

	return c.Rows.SettleRegistration(ctx, registration)
}
