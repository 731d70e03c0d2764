package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// runTimeout limits the duration of a run. The next run processes the remaining items.
	runTimeout = 4 * time.Minute
	// shownIDs and shownErrors limit the number of items and errors in a result.
	shownIDs    = 100
	shownErrors = 5
)

const (
	textUnknown = "There is no job with this name."
	textHeld    = "%d %s are due, more than the limit of %d. List them with a dry run. To change them all, repeat the request with confirm: %d."
)

// Reports stores the newest result of each job, and ensures that only one replica runs a job that is due. reports.Store implements it.
type Reports interface {
	Claim(ctx context.Context, id string, now, next time.Time) (bool, error)
	Save(ctx context.Context, id string, content any, at time.Time) error
	Get(ctx context.Context, id string, content any) (time.Time, error)
	ForScrape(id string, content any, log logrus.FieldLogger) (finished time.Time, found bool)
}

// Runner runs jobs. It is safe for concurrent use. All fields except Metrics are required.
type Runner struct {
	Jobs    []Job
	Reports Reports
	// Metrics counts the items of this replica. Nil disables counting.
	Metrics *Metrics
	// Protected reports whether the instance is protected from deletion.
	Protected func(ctx context.Context, instanceID string) (bool, error)
	Clock     clock.WithTicker
	Log       logrus.FieldLogger
}

// Order is an operator's request to run a job.
type Order struct {
	Name string
	// DryRun makes the run return the due items without changing them.
	DryRun bool
	// Confirm is the number of items that the run may change even if it exceeds the limit.
	Confirm int
	Reason  string
	By      string
}

// Parts returns a lifecycle.Part for each job, which calls TakeTurn periodically.
func (r Runner) Parts() []lifecycle.Part {
	parts := make([]lifecycle.Part, 0, len(r.Jobs))

	for _, job := range r.Jobs {
		parts = append(parts, lifecycle.Periodic{
			Name: "job " + job.Name, Every: job.checkEvery(), Clock: r.Clock, Log: r.Log,
			Work: func(ctx context.Context) error { return r.TakeTurn(ctx, job) },
		}.Part())
	}

	return parts
}

// TakeTurn runs the job, unless a replica has already run it in the current interval. A daily job runs once a day, at most
// dailyWindow after its time.
func (r Runner) TakeTurn(ctx context.Context, job Job) error {
	now := r.Clock.Now()
	due, next := job.turn(now)

	claimed, err := r.Reports.Claim(ctx, reportID(job), due, next)
	if err != nil || !claimed {
		return err
	}

	result := r.run(ctx, job, Order{Reason: job.Reason})

	// Save the result even if a shutdown has ended the run.
	return r.Reports.Save(context.WithoutCancel(ctx), reportID(job), result, r.Clock.Now())
}

// Run runs a job for an operator. A dry run changes nothing: it returns the due items, and which of them belong to protected
// instances. The error is of kind failure.NotFound if there is no such job, and of kind failure.Conflict if more items than the limit
// are due and the order does not confirm them. Errors of items are in the result.
func (r Runner) Run(ctx context.Context, order Order) (Result, error) {
	at := slices.IndexFunc(r.Jobs, func(job Job) bool { return job.Name == order.Name })
	if at < 0 {
		return Result{}, failure.New(failure.NotFound, textUnknown)
	}

	job := r.Jobs[at]

	result := r.run(ctx, job, order)
	if order.DryRun {
		return result, nil
	}

	if result.Held {
		return result, failure.New(failure.Conflict, textHeld, result.Due, job.Items, job.Limit, result.Due)
	}

	return result, r.Reports.Save(context.WithoutCancel(ctx), reportID(job), result, r.Clock.Now())
}

// List returns the jobs with the results of their newest runs.
func (r Runner) List(ctx context.Context) ([]Status, error) {
	list := make([]Status, 0, len(r.Jobs))

	for _, job := range r.Jobs {
		status, result := Status{Job: job}, Result{}

		switch _, err := r.Reports.Get(ctx, reportID(job), &result); {
		case err == nil:
			status.Last = &result
		case !errors.Is(err, storage.ErrNotFound):
			return nil, err
		}

		list = append(list, status)
	}

	return list, nil
}

// run processes the due items. After an error it continues with the next item.
func (r Runner) run(ctx context.Context, job Job, order Order) Result {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()

	result := Result{StartedAt: r.Clock.Now(), By: order.By}
	log := r.Log.WithField("job", job.Name)

	due, err := job.Due(ctx)
	if err != nil {
		result.Errors = append(result.Errors, failure.Of(err).Text)
		log.WithError(err).Warn("job: reading the due items failed")
	}

	result.Due = len(due.Items)
	result.Held = job.Limit > 0 && result.Due > max(job.Limit, order.Confirm)

	for _, item := range due.Items[:min(shownIDs, len(due.Items))] {
		result.IDs = append(result.IDs, item.ID)
	}

	if order.DryRun {
		r.findProtected(ctx, job, due, &result)
		result.FinishedAt = r.Clock.Now()

		return result
	}

	switch {
	case result.Held:
		log.Warnf("job: %d %s are due, more than the limit of %d; the run changes nothing until an operator confirms the number", result.Due, job.Items, job.Limit)
	case err != nil && job.Limit > 0:
		log.Warnf("job: more than the known %d %s may be due; the run changes nothing, because it cannot compare their number with the limit", result.Due, job.Items)
	default:
		r.do(ctx, job, due, order.Reason, &result, log)
	}

	result.FinishedAt = r.Clock.Now()
	r.Metrics.ran(job, result)

	return result
}

// findProtected adds the due items of protected instances to the result of a dry run. It stops at the first error.
func (r Runner) findProtected(ctx context.Context, job Job, due Due, result *Result) {
	result.Protection = job.Protection

	for _, item := range due.Items {
		if item.InstanceID == "" {
			continue
		}

		protected, err := r.Protected(ctx, item.InstanceID)
		if err != nil {
			result.Errors = append(result.Errors, failure.Of(err).Text)
			r.Log.WithError(err).WithField("job", job.Name).Warn("job: looking for protected instances failed")

			return
		}

		if protected {
			result.Protected++
			if len(result.ProtectedIDs) < shownIDs {
				result.ProtectedIDs = append(result.ProtectedIDs, item.ID)
			}
		}
	}
}

// do processes the items, and calls Complete if all of them succeed.
func (r Runner) do(ctx context.Context, job Job, due Due, reason string, result *Result, log logrus.FieldLogger) {
	var failures failures

	for _, item := range due.Items {
		if ctx.Err() != nil {
			break
		}

		changed, err := item.Do(ctx, reason)

		switch {
		case err != nil:
			result.Failed++
			failures.add(item, err)
			log.WithError(err).WithField("item", item.ID).Warn("job: an item failed")
		case changed:
			result.Changed++
		default:
			result.Unchanged++
		}
	}

	result.Errors = append(result.Errors, failures.texts()...)

	if due.Complete != nil && result.Left() == 0 && len(result.Errors) == 0 {
		if err := due.Complete(ctx); err != nil {
			result.Errors = append(result.Errors, failure.Of(err).Text)
			log.WithError(err).Warn("job: completing the run failed")
		}
	}

	if result.Changed > 0 {
		log.Infof("job: changed %d of %d %s", result.Changed, result.Due, job.Items)
	}
}

// failures are the first shownErrors distinct errors of items, in the order of the items.
type failures []itemFailure

// itemFailure is an error that occurred for one or more items.
type itemFailure struct {
	text string
	// first is the ID of the first item with this error. items is the number of items with this error.
	first string
	items int
}

// add counts the error of an item. Errors with the same text share an itemFailure.
func (f *failures) add(item Item, err error) {
	text := failure.Of(err).Text

	if i := slices.IndexFunc(*f, func(each itemFailure) bool { return each.text == text }); i >= 0 {
		(*f)[i].items++
	} else if len(*f) < shownErrors {
		*f = append(*f, itemFailure{text: text, first: item.ID, items: 1})
	}
}

// texts returns the errors, each after the ID of the first item that has it and the number of further items.
func (f *failures) texts() []string {
	var texts []string

	for _, each := range *f {
		others := ""
		if each.items > 1 {
			others = fmt.Sprintf(" and %d more", each.items-1)
		}

		texts = append(texts, fmt.Sprintf("%s%s: %s", each.first, others, each.text))
	}

	return texts
}

// reportID is the ID of the job's results in package reports.
func reportID(job Job) string { return "job " + job.Name }
