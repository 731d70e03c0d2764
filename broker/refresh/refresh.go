// Package refresh keeps the stored addresses of the runtimes' API servers up to date. The broker stores an address whenever it
// gets an admin kubeconfig, at the latest at the end of a creation. This package reads the addresses that are missing because an
// earlier version of the broker created the cluster. It also reads old addresses again, because the certificate authority of a
// cluster can change.
package refresh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/endpoints"
)

const (
	// validity is the time after which a stored address is read again. It is long because each read costs an admin kubeconfig and
	// an audit entry in the Provisioner, while a rotation of certificate authorities takes weeks.
	validity = 7 * 24 * time.Hour
	// retryAfter is the time after which a failed read of an address or a maintenance window is repeated.
	retryAfter = 10 * time.Minute
	// missingEvery is the interval between two searches for instances without an address.
	missingEvery = 24 * time.Hour
	// every and batch limit the reads of a replica to five per second.
	every = 5 * time.Second
	batch = 25
)

// Instances reads instances from the database. Get returns storage.ErrNotFound if an instance does not exist.
type Instances interface {
	Get(ctx context.Context, tx storage.Tx, id string) (environment.Instance, error)
}

// Kubeconfigs creates admin kubeconfigs and passes their addresses to Recorder.Record.
type Kubeconfigs interface {
	AdminKubeconfig(ctx context.Context, instance environment.Instance) (secret.String, error)
}

// Recorder stores the addresses of runtimes.
type Recorder struct {
	Endpoints *endpoints.Store
	Clock     clock.PassiveClock
}

// Record stores the address of the instance's runtime. The error is of kind failure.Transient.
func (r Recorder) Record(ctx context.Context, instance environment.Instance, endpoint environment.Endpoint) error {
	if err := r.Endpoints.Set(ctx, instance, endpoint, r.Clock.Now().Add(validity)); err != nil {
		return failure.Wrap(failure.Transient, err, "the address of the cluster could not be stored")
	}

	return nil
}

// Refresher reads missing and old addresses. All fields are required.
type Refresher struct {
	DB          *storage.DB
	Endpoints   *endpoints.Store
	Instances   Instances
	Kubeconfigs Kubeconfigs
	Clock       clock.WithTicker
	Log         logrus.FieldLogger
}

// Parts returns the lifecycle.Parts that call Refresh and AddMissing periodically.
func (r *Refresher) Parts() []lifecycle.Part {
	return []lifecycle.Part{
		lifecycle.Periodic{Name: "addresses of clusters", Every: every, Work: r.Refresh, Clock: r.Clock, Log: r.Log}.Part(),
		lifecycle.Periodic{Name: "missing addresses of clusters", Every: missingEvery, Work: r.AddMissing, Clock: r.Clock, Log: r.Log}.Part(),
	}
}

// AddMissing schedules an immediate read of the address of each cluster that has no stored address.
func (r *Refresher) AddMissing(ctx context.Context) error {
	return allPages(ctx, r.Clock, func(after string) (string, error) { return r.Endpoints.AddMissing(ctx, r.Clock.Now(), after) })
}

// allPages calls add for each page of instances and pauses between the pages. add returns the ID after which the next page
// starts, or "".
func allPages(ctx context.Context, clock clock.Clock, add func(after string) (next string, err error)) error {
	for after := ""; ; {
		started := clock.Now()

		next, err := add(after)
		if err != nil || next == "" {
			return err
		}

		after = next

		if err := lifecycle.Rest(ctx, clock, clock.Since(started)); err != nil {
			return err
		}
	}
}

// Refresh reads up to batch addresses that are due. It stops at the first database error. An address that cannot be read is due
// again after retryAfter.
func (r *Refresher) Refresh(ctx context.Context) error {
	now := r.Clock.Now()

	due, err := r.Endpoints.ListDue(ctx, now, batch)
	if err != nil {
		return err
	}

	for _, each := range due {
		if err := r.refresh(ctx, each, now); err != nil {
			return err
		}
	}

	return nil
}

// refresh claims and reads an address. It does nothing if another replica has claimed the address.
func (r *Refresher) refresh(ctx context.Context, due endpoints.Due, now time.Time) error {
	claimed, err := r.Endpoints.Postpone(ctx, due, now.Add(retryAfter))
	if err != nil || !claimed {
		return err
	}

	instance, err := r.Instances.Get(ctx, r.DB.Reader(), due.InstanceID)

	switch {
	case errors.Is(err, storage.ErrNotFound) || err == nil && instance.RuntimeID == "":
		return r.Endpoints.Remove(ctx, due.InstanceID)
	case err != nil:
		return fmt.Errorf("reading the address of a cluster: %w", err)
	}

	if _, err := r.Kubeconfigs.AdminKubeconfig(ctx, instance); err != nil && ctx.Err() == nil {
		r.Log.WithError(err).WithFields(logrus.Fields{logging.InstanceID: instance.ID, logging.RuntimeID: instance.RuntimeID}).
			Infof("reading the address of a cluster failed; trying again in %s", retryAfter)
	}

	return nil
}
