// Package clusterwait has steps that wait for Gardener: until it has taken up what a Shoot wants, and until the cluster is like that.
package clusterwait

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// Shoots is what the steps need of Gardener. Its errors are of package failure.
type Shoots interface {
	Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error)
	Retry(ctx context.Context, shoot *gardencorev1beta1.Shoot) error
}

// Options say how a step waits.
type Options struct {
	// Name is the step's.
	Name   string
	Shoots Shoots
	// Poll is how often the Shoot is looked at when no change of it is told.
	Poll time.Duration
	// Limit bounds the wait.
	Limit time.Duration
	// Also, if set, says what else Settled waits for once Gardener is done, or nothing.
	Also func(shoot *gardencorev1beta1.Shoot) string
}

// TakenUp returns the step that waits until Gardener works on the newest generation of the Shoot. From then on its status is of
// that generation and not of one before.
func TakenUp(options Options) process.Step[operation.Data] { return takenUp{options} }

// Settled returns the step that waits until the cluster is as the newest generation of the Shoot wants it, or Gardener has given up.
func Settled(options Options) process.Step[operation.Data] { return settled{options} }

// Await has the step run again until the limit has passed, telling what Gardener does meanwhile. An operation that has waited too long
// fails because of what Gardener has met, if it has told.
func Await(op operation.Operation, progress gardener.Progress, poll, limit time.Duration) (operation.Operation, time.Duration, error) {
	op, wait, err := process.Await(op, progress.Message, poll, limit)
	if err != nil && progress.Codes != "" {
		return op, wait, failure.Of(err).WithReason(progress.Codes, failure.ComponentGardener)
	}

	return op, wait, err
}

type takenUp struct{ Options }

// Name implements process.Step.
func (s takenUp) Name() string { return s.Options.Name }

// Run implements process.Step.
func (s takenUp) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	shoot, err := s.Shoots.Get(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return op, 0, err
	}

	switch {
	case shoot.DeletionTimestamp != nil:
		return op, 0, gardener.BeingRemoved(shoot)
	case !gardener.TakenUp(shoot):
		return Await(op, gardener.ProgressOf(shoot), s.Poll, s.Limit)
	default:
		return op, 0, nil
	}
}

type settled struct{ Options }

// Name implements process.Step.
func (s settled) Name() string { return s.Options.Name }

// Run implements process.Step.
func (s settled) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	shoot, err := s.Shoots.Get(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return op, 0, err
	}

	progress := gardener.ProgressOf(shoot)

	switch {
	case shoot.DeletionTimestamp != nil:
		return op, 0, gardener.BeingRemoved(shoot)
	case progress.Err != nil:
		return op, 0, progress.Err
	case progress.Done && s.lacks(shoot) != "":
		return process.Await(op, s.lacks(shoot), s.Poll, s.Limit)
	case progress.Done:
		op.WaitingFor = ""

		return op, 0, nil
	case progress.Stopped && progress.Rested(op.Now()):
		if err := s.Shoots.Retry(ctx, shoot); err != nil {
			return op, 0, err
		}
	}

	return Await(op, progress, s.Poll, s.Limit)
}

// lacks is what is waited for beside Gardener's word that it is done, or empty.
func (s settled) lacks(shoot *gardencorev1beta1.Shoot) string {
	if s.Also == nil {
		return ""
	}

	return s.Also(shoot)
}
