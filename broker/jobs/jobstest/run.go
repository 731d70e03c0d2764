// Package jobstest runs jobs in the tests of the packages that define them.
package jobstest

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/broker/jobs"
)

// Run does everything that is due with the reason of the job, and returns the joined errors. Like a Runner, it continues after an error
// with the next item.
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
