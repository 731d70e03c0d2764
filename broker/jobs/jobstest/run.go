// Package jobstest runs jobs in the tests of the packages that define them.
package jobstest

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/broker/jobs"
)

// Run processes all due items with the reason of the job, and returns the joined errors. Like a Runner, it continues with the
// next item after an error.
func Run(ctx context.Context, job jobs.Job) error {
	due, err := job.Due(ctx)
	failed := []error{err}

	for _, item := range due.Items {
		_, err := item.Do(ctx, job.Reason)
		failed = append(failed, err)
	}

	if due.Complete != nil && errors.Join(failed...) == nil {
		failed = append(failed, due.Complete(ctx))
	}

	return errors.Join(failed...)
}
