package subaccounts

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/internal/clients/cis"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/reports"
)

const (
	// Name is the name of the job, which identifies it in the operator API and in metrics.
	Name = "subaccounts"
	// cursorID is the ID of the cursor in package reports.
	cursorID = "events of subaccounts"
	// overlap is the period before the newest handled event for which each run reads the events again. The run thus repeats failed
	// deletions of this period, and finds events that became visible late.
	overlap = 7 * 24 * time.Hour
	// retryAfter is the pause after a failed deletion. It is long because an operator usually has to fix the cause.
	retryAfter = 24 * time.Hour
	// batch is the maximum number of subaccounts in one query.
	batch = 500
)

// Events lists deleted subaccounts. cis.Client implements it.
type Events interface {
	DeletedSubaccounts(ctx context.Context, since time.Time) ([]cis.Event, error)
}

// Cleaner finds and deletes the instances of deleted subaccounts. It is stateless and safe for concurrent use. All fields are required.
type Cleaner struct {
	Events     Events
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	// Reports stores the cursor.
	Reports *reports.Store
	// Delete accepts the deletion of an instance. It returns false if the instance is gone or already being deleted.
	Delete func(ctx context.Context, instanceID, reason string) (bool, error)
	Clock  clock.PassiveClock
}

// cursor is the stored progress. Its JSON form never changes.
type cursor struct {
	// Newest is the time of the newest event that was handled, or the time of the run if the event is from the future.
	Newest time.Time `json:"newest"`
}

// Job returns the job that deletes the instances of deleted subaccounts, each in a separate transaction.
func (c Cleaner) Job(every time.Duration, limit int) jobs.Job {
	return jobs.Job{
		Name: Name, Description: "Delete the instances of subaccounts that were deleted in SAP Cloud Management.",
		Items: "instances", Every: every, Limit: limit, Reason: "the subaccount was deleted", Due: c.due,
		Protection: "Protected instances are kept: each causes an error in every run until an operator lifts its protection.",
	}
}

// due returns the instances whose subaccounts were deleted after the newest handled event, or at most overlap before it.
func (c Cleaner) due(ctx context.Context) (jobs.Due, error) {
	var at cursor
	if _, err := c.Reports.Get(ctx, cursorID, &at); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return jobs.Due{}, err
	}

	events, err := c.Events.DeletedSubaccounts(ctx, at.Newest.Add(-overlap))
	if err != nil {
		return jobs.Due{}, err
	}

	next, subaccounts := at, make([]string, 0, len(events))

	for _, event := range events {
		subaccounts = append(subaccounts, event.Subaccount)

		if event.At.After(next.Newest) {
			next.Newest = event.At
		}
	}

	// An event whose time is wrong must not hide those that follow.
	if now := c.Clock.Now(); next.Newest.After(now) {
		next.Newest = now
	}

	slices.Sort(subaccounts) // CIS can return an event twice, far apart
	subaccounts = slices.Compact(subaccounts)

	due := jobs.Due{Complete: func(ctx context.Context) error { return c.Reports.Save(ctx, cursorID, next, c.Clock.Now()) }}

	for first := 0; first < len(subaccounts); first += batch {
		ids, err := c.Instances.OfSubaccounts(ctx, subaccounts[first:min(first+batch, len(subaccounts))])
		if err != nil {
			return jobs.Due{}, err
		}

		for _, id := range ids {
			deletable, err := c.deletable(ctx, id)
			if err != nil {
				return jobs.Due{}, err
			}

			if deletable {
				due.Items = append(due.Items, jobs.Item{ID: id, InstanceID: id, Do: func(ctx context.Context, reason string) (bool, error) {
					changed, err := c.Delete(ctx, id, reason)

					return changed, failure.While(err, "deleting instance %s", id)
				}})
			}
		}
	}

	return due, nil
}

// deletable reports whether the job may delete the instance now. It returns false while a deletion of the instance is unfinished,
// and for retryAfter after a failed deletion.
func (c Cleaner) deletable(ctx context.Context, id string) (bool, error) {
	last, err := c.Operations.Latest(ctx, c.DB.Reader(), id, environment.KindDeprovision)
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil
	}

	return last.State.Terminal() && (last.State == process.Succeeded || !last.FinishedAt.After(c.Clock.Now().Add(-retryAfter))), err
}
