package refresh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

const (
	// windowValidity is the time after which a stored window is read again. Operators of Gardener rarely change windows.
	windowValidity = 24 * time.Hour
	// newWindowsEvery is the interval between two searches for instances without a stored window.
	newWindowsEvery = 10 * time.Minute
)

// ShootWindows reads the maintenance windows of Shoots from the Provisioner. provisionerclient.Client implements it.
type ShootWindows interface {
	MaintenanceWindow(ctx context.Context, tenant, runtimeID string) (fleet.WindowTimes, error)
}

// Windows keeps the stored maintenance windows of Shoots up to date, so that the planning of orchestrations needs no other
// system. All fields are required.
type Windows struct {
	DB          *storage.DB
	Store       *orchestrations.Store
	Instances   Instances
	Provisioner ShootWindows
	Clock       clock.WithTicker
	Log         logrus.FieldLogger
}

// Parts returns the lifecycle.Parts that call Refresh and AddMissing periodically.
func (w *Windows) Parts() []lifecycle.Part {
	return []lifecycle.Part{
		lifecycle.Periodic{Name: "maintenance windows", Every: every, Work: w.Refresh, Clock: w.Clock, Log: w.Log}.Part(),
		lifecycle.Periodic{Name: "missing maintenance windows", Every: newWindowsEvery, Work: w.AddMissing, Clock: w.Clock, Log: w.Log}.Part(),
	}
}

// AddMissing schedules an immediate read of the window of each Shoot that has no stored window.
func (w *Windows) AddMissing(ctx context.Context) error {
	return allPages(ctx, w.Clock, func(after string) (string, error) { return w.Store.AddShootWindows(ctx, w.Clock.Now(), after) })
}

// Refresh reads up to batch windows that are due. It stops at the first database error. A window that cannot be read is due again
// after retryAfter. The next read is due after a day if the window is invalid, or if the Provisioner does not report windows.
// Kyma Provisioner does not report them.
func (w *Windows) Refresh(ctx context.Context) error {
	now := w.Clock.Now()

	due, err := w.Store.DueShootWindows(ctx, now, batch)
	if err != nil {
		return err
	}

	for _, each := range due {
		claimed, err := w.Store.PostponeShootWindow(ctx, each, now.Add(retryAfter))
		if err != nil {
			return err
		}

		if !claimed {
			continue // another replica reads it
		}

		if err := w.refresh(ctx, each.InstanceID, now); err != nil {
			return err
		}
	}

	return nil
}

// refresh reads and stores one window.
func (w *Windows) refresh(ctx context.Context, instanceID string, now time.Time) error {
	instance, err := w.Instances.Get(ctx, w.DB.Reader(), instanceID)

	switch {
	case errors.Is(err, storage.ErrNotFound) || err == nil && instance.RuntimeID == "":
		return w.Store.RemoveShootWindow(ctx, instanceID)
	case err != nil:
		return fmt.Errorf("reading the maintenance window of a Shoot: %w", err)
	}

	window, err := w.Provisioner.MaintenanceWindow(ctx, instance.RuntimeTenant(), instance.RuntimeID)
	if err == nil && window.Begin != "" {
		if _, invalid := window.Window(); invalid != nil {
			w.log(instance, invalid, windowValidity)

			window = fleet.WindowTimes{}
		}
	}

	switch {
	case err == nil || errors.Is(err, provisionerclient.ErrNotUnderstood):
		return w.Store.SetShootWindow(ctx, instanceID, window, now.Add(windowValidity))
	case ctx.Err() == nil:
		w.log(instance, err, retryAfter)
	}

	return nil
}

func (w *Windows) log(instance environment.Instance, err error, again time.Duration) {
	w.Log.WithError(err).WithFields(logrus.Fields{logging.InstanceID: instance.ID, logging.RuntimeID: instance.RuntimeID}).
		Infof("reading the maintenance window of a Shoot failed; trying again in %s", again)
}
