// Package cleanup removes the leftovers of deletions and suspensions: it repeats the steps that were not completed, once a day in
// a job, or immediately for operators. Operators can also confirm that nothing is left.
package cleanup

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

const (
	// checkEvery is the interval between two searches for due leftovers.
	checkEvery = 5 * time.Minute
	// pageSize is the maximum number of due leftovers that one query returns.
	pageSize = 100

	// reasonDue is the reason in the audit log and the timeline when a cleanup starts in the background.
	reasonDue = "steps were not completed"
)

// Cleaner starts cleanups. If an operator confirms that nothing is left, it removes the leftover from the list. A Cleaner is
// stateless and safe for concurrent use. All fields are required.
type Cleaner struct {
	// DB is the database that all stores use. A leftover and its cleanup are written in one transaction.
	DB         *storage.DB
	Leftovers  *leftovers.Store
	Objects    *outsideobjects.Store
	Operations *operations.Store
	// Finished returns the stages that a cleanup skips if it repeats the given steps.
	Finished func(steps []string) []string
	// Recorder writes each cleanup and each confirmation to the audit log.
	Recorder *audit.Recorder
	// Wake makes the engine look for due operations. It is called after a commit and must not block.
	Wake  func()
	Clock clock.PassiveClock
}

// Job returns the job that starts the cleanups of all leftovers that are due, each in a separate transaction.
func (c Cleaner) Job(limit int) jobs.Job {
	return jobs.Job{
		Name: "leftovers", Description: "Repeat the steps that a deletion or suspension did not complete, once a day.",
		Items: "leftovers", Every: checkEvery, Limit: limit, Reason: reasonDue, Due: c.due,
		Protection: "Deletion protection has no effect: the deletion or suspension has already happened.",
	}
}

// due returns an item for each leftover whose next cleanup is due.
func (c Cleaner) due(ctx context.Context) (jobs.Due, error) {
	var due jobs.Due

	for after := ""; ; {
		ids, err := c.Leftovers.Due(ctx, c.Clock.Now(), after, pageSize)
		if err != nil || len(ids) == 0 {
			return due, err
		}

		for _, id := range ids {
			due.Items = append(due.Items, jobs.Item{ID: id, Do: func(ctx context.Context, reason string) (bool, error) {
				return c.cleanDue(ctx, id, reason)
			}})
		}

		after = ids[len(ids)-1]
	}
}

// cleanDue starts the cleanup of a leftover, unless another replica has done so or the leftover is gone.
func (c Cleaner) cleanDue(ctx context.Context, id, reason string) (changed bool, err error) {
	_, changed, err = c.start(ctx, id, reason, true)
	if failure.Is(err, failure.NotFound) {
		return false, nil
	}

	return changed && err == nil, failure.While(err, "cleaning up the leftover %s", id)
}

// Clean starts a cleanup of the leftover now, and returns the ID of the cleanup. If a cleanup is already running, Clean returns the
// ID of that cleanup. The audit log and the timeline contain the reason. If there is no such leftover, the error is of kind
// failure.NotFound.
func (c Cleaner) Clean(ctx context.Context, id, reason string) (cleanupID string, err error) {
	cleanupID, _, err = c.start(ctx, id, reason, false)

	return cleanupID, err
}

// start implements Clean, and reports whether it has accepted a cleanup. If onlyDue is set, it ignores a leftover that is not
// due.
func (c Cleaner) start(ctx context.Context, id, reason string, onlyDue bool) (cleanupID string, accepted bool, err error) {
	err = c.DB.InTx(ctx, func(tx storage.Tx) error {
		leftover, running, err := c.lock(ctx, tx, id)
		if err != nil {
			return err
		}

		cleanupID = running
		if running != "" || onlyDue && leftover.RetryAt.After(c.Clock.Now()) {
			return nil
		}

		accepted = true

		cleanupID, err = c.accept(ctx, tx, leftover, reason)

		return err
	})
	if err == nil && accepted {
		c.Wake()
	}

	return cleanupID, accepted, err
}

// lock locks the leftover. It also returns the ID of its unfinished cleanup, if any.
func (c Cleaner) lock(ctx context.Context, tx storage.Tx, id string) (_ environment.Leftover, running string, _ error) {
	leftover, err := c.Leftovers.Lock(ctx, tx, id)
	if errors.Is(err, storage.ErrNotFound) {
		return leftover, "", failure.New(failure.NotFound, "There is no leftover with this ID.")
	}

	if err != nil {
		return leftover, "", err
	}

	newest, err := c.Operations.Latest(ctx, tx, leftover.Key(), environment.KindCleanup)
	if errors.Is(err, storage.ErrNotFound) {
		return leftover, "", nil
	}

	if !newest.State.Terminal() {
		running = newest.ID
	}

	return leftover, running, err
}

// accept accepts a cleanup and writes it to the audit log.
func (c Cleaner) accept(ctx context.Context, tx storage.Tx, leftover environment.Leftover, reason string) (string, error) {
	payload, err := c.Operations.Payload(ctx, tx, leftover.DataID)
	if err != nil {
		return "", err
	}

	now := c.Clock.Now()

	cleanup, err := environment.NewCleanup(leftover, payload, c.Finished(leftover.Steps), now)
	if err != nil {
		return "", err
	}

	cleanup.Why, cleanup.OrderedBy, cleanup.Trace = reason, audit.ActorOf(ctx).Name(), tracing.Traceparent(ctx)

	if err := c.Operations.Accept(ctx, tx, cleanup); err != nil {
		return "", err
	}

	if err := c.Leftovers.SetCleanup(ctx, tx, leftover.ID, cleanup.ID, now.Add(environment.CleanupInterval)); err != nil {
		return "", err
	}

	return cleanup.ID, c.Recorder.Record(ctx, tx, auditlog.Entry{
		Action: auditlog.ActionCleanup, InstanceID: leftover.Instance.ID, OperationID: cleanup.ID, Status: http.StatusAccepted, Reason: reason,
	})
}

// Confirm removes a leftover from the list without a cleanup, because an operator has confirmed that nothing is left. It returns
// the leftover with its objects. The audit log records the reason, the steps and the objects. The error is of kind
// failure.NotFound if there is no such leftover, and of kind failure.Conflict while a cleanup runs.
func (c Cleaner) Confirm(ctx context.Context, id, reason string) (
	leftover environment.Leftover, objects []environment.OutsideObject, err error,
) {
	err = c.DB.InTx(ctx, func(tx storage.Tx) error {
		var running string

		if leftover, running, err = c.lock(ctx, tx, id); err != nil {
			return err
		}

		if running != "" {
			return failure.New(failure.Conflict, "The cleanup %s is running. Wait until it has ended, or cancel it.", running)
		}

		if objects, err = c.Objects.Recorded(ctx, tx, leftover.Key()); err != nil {
			return err
		}

		if err := c.Objects.RemoveAll(ctx, tx, leftover.Key()); err != nil {
			return err
		}

		if err := c.Leftovers.Remove(ctx, tx, leftover.ID); err != nil {
			return err
		}

		return c.Recorder.Record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionConfirm, InstanceID: leftover.Instance.ID, OperationID: leftover.ID, Status: http.StatusOK, Reason: reason,
			Before: auditlog.Fields{"steps": leftover.Steps, "objects": names(objects)},
		})
	})

	return leftover, objects, err
}

// names describes each object by its system, kind and key, for the audit log.
func names(objects []environment.OutsideObject) []string {
	texts := make([]string, 0, len(objects))
	for _, object := range objects {
		texts = append(texts, strings.Join([]string{object.System, object.Kind, object.Key}, " "))
	}

	return texts
}
