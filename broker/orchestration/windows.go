package orchestration

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

const (
	textLate      = "The upgrade could not start before the deadline."
	textUnstarted = "The upgrade did not start in its maintenance window, because the broker was busy or stopped. The upgrade now waits for the next window."
)

// repeatUnstarted makes targets pending again if the engine has not started their upgrades before the end of the window or the
// deadline. Such an upgrade has done nothing, so it must not be recorded as a failure.
func repeatUnstarted(ctx context.Context, tx storage.Tx, store *orchestrations.Store, orchestration environment.Orchestration) error {
	if strategy := orchestration.Parameters.Strategy; !strategy.MaintenanceWindow && strategy.Deadline.IsZero() {
		return nil
	}

	unstarted, err := store.Unstarted(ctx, tx, orchestration.ID, failure.ReasonNotStarted)
	if err != nil {
		return err
	}

	for _, target := range unstarted {
		target.Description = textUnstarted

		if err := store.Repeat(ctx, tx, target, uuid.NewString()); err != nil {
			return err
		}
	}

	return nil
}

// schedule moves pending targets whose windows have ended to the next occurrence of their windows, and cancels targets that
// cannot start before the deadline.
func (c Conductor) schedule(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration) error {
	now, deadline := c.Clock.Now(), orchestration.Parameters.Strategy.Deadline

	if !deadline.IsZero() && !now.Before(deadline) {
		return c.Orchestrations.CancelPending(ctx, tx, orchestration.ID, textLate)
	}

	ended, err := c.Orchestrations.EndedWindows(ctx, tx, orchestration.ID, now)
	if err != nil {
		return err
	}

	for _, text := range ended {
		window, err := fleet.ParseWindow(text)
		if err != nil {
			return failure.Wrap(failure.Internal, err, "orchestration %s has an unreadable maintenance window", orchestration.ID)
		}

		notBefore, notAfter := occurrence(window, now)

		if err := c.Orchestrations.MoveToWindow(ctx, tx, orchestration.ID, text, notBefore, notAfter, now); err != nil {
			return err
		}
	}

	if len(ended) == 0 || deadline.IsZero() {
		return nil
	}

	return c.Orchestrations.CancelLate(ctx, tx, orchestration.ID, textLate, deadline)
}

// windowChanges returns the pending targets of a plan whose windows have changed, with the new windows.
func windowChanges(before, after []environment.Target) []environment.Target {
	former := make(map[string]string, len(before))
	for _, target := range before {
		former[target.InstanceID] = target.Window
	}

	var moved []environment.Target

	for _, target := range after {
		if window, planned := former[target.InstanceID]; planned && window != target.Window && target.State == environment.TargetPending {
			moved = append(moved, target)
		}
	}

	return moved
}

// moveWindows sets the windows of the targets, with one SQL statement for each window.
func (o Orders) moveWindows(ctx context.Context, tx storage.Tx, targets []environment.Target) error {
	type place struct {
		window              string
		notBefore, notAfter time.Time
	}

	groups, order := map[place][]string{}, []environment.Target(nil)

	for _, target := range targets {
		at := place{target.Window, target.NotBefore, target.NotAfter}
		if groups[at] == nil {
			order = append(order, target)
		}

		groups[at] = append(groups[at], target.InstanceID)
	}

	for _, target := range order {
		if err := o.Orchestrations.SetWindows(ctx, tx, target, groups[place{target.Window, target.NotBefore, target.NotAfter}]); err != nil {
			return err
		}
	}

	return nil
}
