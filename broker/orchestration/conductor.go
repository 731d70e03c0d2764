package orchestration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/orchestrating"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

const (
	// startBatch is the maximum number of upgrades that one transaction starts.
	startBatch = 20
	// busyPause is the time after which the conductor tries again to upgrade an instance that was busy with another operation.
	// Operations that tenants order take precedence.
	busyPause = time.Minute
)

// Conductor conducts orchestrations. It implements orchestrating.Orchestrations. It is stateless and safe for concurrent use. All
// fields are required.
type Conductor struct {
	// DB is the database that the stores use.
	DB             *storage.DB
	Orchestrations *orchestrations.Store
	Planner        Planner
	Clock          clock.PassiveClock
}

// conduct calls work in a transaction that holds the orchestration's lock. by is the operation that conducts the orchestration.
// If that operation has lost its lease, conduct returns an error without calling work.
func (c Conductor) conduct(ctx context.Context, by process.Record, work func(tx storage.Tx, orchestration environment.Orchestration) error) error {
	return explain(c.DB.InTx(ctx, func(tx storage.Tx) error {
		orchestration, err := c.Orchestrations.Conduct(ctx, tx, by)
		if err != nil {
			return err
		}

		return work(tx, orchestration)
	}))
}

// explain converts a database error to a transient failure.Error. A lost lease is also transient, because the replica that holds
// the lease continues.
func explain(err error) error {
	if _, explained := errors.AsType[*failure.Error](err); err == nil || explained {
		return err
	}

	return failure.Wrap(failure.Transient, err, "the orchestration could not be read or written because of a database error").
		WithReason(failure.ReasonInternal, failure.ComponentBrokerDatabase)
}

// Advance implements orchestrating.Orchestrations. After the transaction, it wakes the engine, which runs the accepted upgrades.
func (c Conductor) Advance(ctx context.Context, by process.Record) (progress orchestrating.Progress, err error) {
	err = c.conduct(ctx, by, func(tx storage.Tx, orchestration environment.Orchestration) error {
		progress, err = c.advance(ctx, tx, orchestration)

		return err
	})
	if err == nil {
		c.Planner.Upgrader.Wake()
	}

	return progress, err
}

func (c Conductor) advance(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration) (orchestrating.Progress, error) {
	if err := repeatUnstarted(ctx, tx, c.Orchestrations, orchestration); err != nil {
		return orchestrating.Progress{}, err
	}

	if err := c.Orchestrations.Settle(ctx, tx, orchestration.ID); err != nil {
		return orchestrating.Progress{}, err
	}

	more := false

	if orchestration.State == environment.OrchestrationCanceling {
		if err := c.Orchestrations.CancelPending(ctx, tx, orchestration.ID, textCanceled); err != nil {
			return orchestrating.Progress{}, err
		}
	} else {
		starts, err := true, c.schedule(ctx, tx, orchestration)
		if err == nil {
			starts, err = c.step(ctx, tx, &orchestration)
		}

		if err == nil && starts {
			more, err = c.start(ctx, tx, orchestration)
		}

		if err != nil {
			return orchestrating.Progress{}, err
		}
	}

	return c.progress(ctx, tx, orchestration, more)
}

// progress returns the progress of the orchestration and stores it. more reports whether more targets can start immediately.
func (c Conductor) progress(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration,
	more bool,
) (progress orchestrating.Progress, err error) {
	stats, err := c.Orchestrations.Stats(ctx, tx, orchestration.ID)
	if err != nil {
		return progress, err
	}

	progress.Text, progress.Done = describeProgress(orchestration, stats), unfinished(stats) == 0

	if orchestration.State.Stopped() { // resuming the orchestration makes the conductor due
		progress.Text = orchestration.Description
	} else if progress.Next, err = c.next(ctx, tx, orchestration, more); err != nil {
		return progress, err
	}

	return progress, c.Orchestrations.SetState(ctx, tx, orchestration.ID, orchestration.State, progress.Text, c.Clock.Now())
}

// next returns the latest time at which the conductor must run again. It returns zero if the conductor can wait for the end of a
// running upgrade, which makes the conductor due.
func (c Conductor) next(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration, more bool) (time.Time, error) {
	running, err := c.Orchestrations.Running(ctx, tx, orchestration.ID)
	if err != nil {
		return time.Time{}, err
	}

	due, err := c.Orchestrations.NextDue(ctx, tx, orchestration.ID, orchestration.Wave)
	if err != nil {
		return time.Time{}, err
	}

	// If a target is due but no more upgrades can start, the target waits for the end of a running upgrade, which makes the conductor
	// due.
	if !due.IsZero() && (more || due.After(c.Clock.Now()) || len(running) == 0) {
		if soaked := orchestration.SoakUntil; !soaked.IsZero() && soaked.Before(due) { // later waves do not wait for times that owners have chosen
			return soaked, nil
		}

		return due, nil
	}

	// All targets of this wave have ended and no upgrade is running, so nothing else would make the conductor due. Run it now, to
	// begin the next wave.
	if due.IsZero() && len(running) == 0 && orchestration.SoakUntil.IsZero() {
		return c.Clock.Now(), nil
	}

	return orchestration.SoakUntil, nil
}

// start starts due upgrades: at most startBatch, and no more than the orchestration's limits allow. It reports whether more can
// start now.
func (c Conductor) start(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration) (more bool, err error) {
	running, err := c.Orchestrations.Running(ctx, tx, orchestration.ID)
	if err != nil {
		return false, err
	}

	room := newRoom(*orchestration.Parameters.Strategy.Parallel, running)

	for tried := 0; room.left() > 0; {
		providers, regions := room.full()

		due, err := c.Orchestrations.Due(ctx, tx, orchestration.ID, orchestrations.DueFilter{
			Wave: orchestration.Wave, Now: c.Clock.Now(), WithoutProviders: providers, WithoutRegions: regions, Limit: min(room.left(), startBatch),
		})
		if err != nil || len(due) == 0 {
			return false, err
		}

		for _, target := range due {
			if tried == startBatch {
				return true, nil
			}

			if !room.fits(target) {
				continue // its region or provider is now full; the next query omits it
			}

			tried++

			if target, err = c.startTarget(ctx, tx, orchestration, target); err != nil {
				return false, err
			}

			room.add(target)
		}
	}

	return false, nil
}

// startTarget accepts the upgrade of the target and returns the target with its new state. If the instance is busy with another
// operation, the target stays pending. If the instance is gone or its state forbids the upgrade, the target is canceled. If the
// instance cannot be decrypted or has changed since the plan was made, or if the upgrade is invalid, the target is left out.
func (c Conductor) startTarget(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration,
	target environment.Target,
) (environment.Target, error) {
	order := upgrade.Order{
		InstanceID: target.InstanceID, Kind: orchestration.Kind, Version: version(orchestration.Kind, orchestration.Parameters),
		DryRun:      orchestration.Parameters.DryRun,
		OperationID: target.OperationID, PredecessorID: target.FormerID, NotAfter: target.NotAfter,
		Why: fmt.Sprintf("orchestration %s, ordered by %s", orchestration.ID,
			cmp.Or(orchestration.AppliedBy, orchestration.OrderedBy, "an unauthenticated user")),
	}

	if deadline := orchestration.Parameters.Strategy.Deadline; !deadline.IsZero() && (order.NotAfter.IsZero() || deadline.Before(order.NotAfter)) {
		order.NotAfter = deadline
	}

	// Only the first upgrade of a target must match the planned versions. A retry need not, because the failed upgrade may
	// already have changed the version.
	if !orchestration.AppliedAt.IsZero() && target.FormerID == "" {
		order.Planned = &upgrade.Versions{From: target.FromVersion, To: target.ToVersion}
	}

	var err error
	if order.RollsBack, err = c.rollsBack(ctx, tx, orchestration, target); err != nil {
		return target, err
	}

	_, err = c.Planner.Upgrader.Accept(ctx, tx, order)

	refused, isRefusal := errors.AsType[*failure.Error](err)

	switch {
	case err == nil:
		target.State, target.Description = environment.TargetInProgress, ""
	case errors.Is(err, upgrade.ErrBusy):
		target.NotBefore, target.Description = c.Clock.Now().Add(busyPause), "Waiting: "+refused.Text
	case errors.Is(err, storage.ErrNotFound):
		target.State, target.Description = environment.TargetCanceled, textGone
	case isUnreadable(err):
		target.State, target.Description = environment.TargetLeftOut, textUnreadable
	case isRefusal && refused.Kind == failure.Invalid, errors.Is(err, upgrade.ErrChanged):
		target.State, target.Description = environment.TargetLeftOut, refused.Text
	case isRefusal && refused.Kind == failure.Conflict:
		target.State, target.Description = environment.TargetCanceled, refused.Text
	default:
		return target, err
	}

	return target, c.Orchestrations.SetTarget(ctx, tx, target)
}

// isUnreadable reports whether the instance, or an operation that an undo needs, cannot be decrypted. A retry would not help.
func isUnreadable(err error) bool {
	return errors.Is(err, instances.ErrUnreadable) || errors.Is(err, operations.ErrSealed)
}

// version returns the requested Kyma or Kubernetes version, or an empty string for the default version.
func version(kind string, parameters fleet.Parameters) string {
	switch {
	case kind == environment.KindUpgradeKyma && parameters.Kyma != nil:
		return parameters.Kyma.Version
	case kind == environment.KindUpgradeCluster && parameters.Kubernetes != nil:
		return parameters.Kubernetes.KubernetesVersion
	default:
		return ""
	}
}

// End implements orchestrating.Orchestrations: the returned effect ends the orchestration.
func (c Conductor) End(by process.Record) process.Effect {
	return operations.Effect(func(ctx context.Context, tx storage.Tx) error {
		orchestration, err := c.Orchestrations.Conduct(ctx, tx, by)
		if err != nil {
			return explain(err)
		}

		stats, err := c.Orchestrations.Stats(ctx, tx, orchestration.ID)
		if err != nil {
			return explain(err)
		}

		if unfinished(stats) > 0 {
			return failure.New(failure.Transient, "the orchestration cannot end yet: targets have become pending again")
		}

		state := environment.OrchestrationSucceeded

		switch {
		case orchestration.State == environment.OrchestrationCanceling:
			state = environment.OrchestrationCanceled
		case stats[string(environment.TargetFailed)] > 0:
			state = environment.OrchestrationFailed
		}

		return explain(c.Orchestrations.SetState(ctx, tx, orchestration.ID, state, describe(stats), c.Clock.Now()))
	})
}

// room counts the running upgrades of an orchestration and compares them with the limits.
type room struct {
	limits               fleet.Parallel
	total                int
	byProvider, byRegion map[string]int
}

func newRoom(limits fleet.Parallel, running map[orchestrations.Place]int) *room {
	r := &room{limits: limits, byProvider: map[string]int{}, byRegion: map[string]int{}}
	for place, count := range running {
		r.total += count
		r.byProvider[place.Provider] += count
		r.byRegion[place.Region] += count
	}

	return r
}

// left returns how many upgrades can start overall.
func (r *room) left() int { return r.limits.Workers - r.total }

// full returns the providers and the regions whose limits are reached.
func (r *room) full() (providers, regions []string) {
	return reached(r.byProvider, r.limits.WorkersPerProvider), reached(r.byRegion, r.limits.WorkersPerRegion)
}

// reached returns the names whose counts have reached the limit. If the limit is 0, there is no limit, and it returns nil.
func reached(counts map[string]int, limit int) []string {
	var names []string

	for name, count := range counts {
		if limit > 0 && count >= limit {
			names = append(names, name)
		}
	}

	return names
}

// fits reports whether the limits allow the upgrade of the target to start.
func (r *room) fits(target environment.Target) bool {
	return r.left() > 0 &&
		(r.limits.WorkersPerProvider == 0 || r.byProvider[target.Provider] < r.limits.WorkersPerProvider) &&
		(r.limits.WorkersPerRegion == 0 || r.byRegion[target.Region] < r.limits.WorkersPerRegion)
}

// add counts the target as a running upgrade if the target is in progress.
func (r *room) add(target environment.Target) {
	if target.State == environment.TargetInProgress {
		r.total++
		r.byProvider[target.Provider]++
		r.byRegion[target.Region]++
	}
}
