package service_test

import (
	"os"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/cleanup"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/broker/poolcleanup"
	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/broker/subaccounts"
)

// TestJobsStateTheirProtection checks that each job states, in its dry run and on its page, what it does with protected instances.
func TestJobsStateTheirProtection(t *testing.T) {
	for _, job := range []jobs.Job{
		expiry.Expirer{}.Job(0), cleanup.Cleaner{}.Job(0), broker.ExpiryOfBindings(broker.Options{}, 0), poolcleanup.Cleaner{}.Job(0),
		subaccounts.Cleaner{}.Job(0, 0),
	} {
		if !strings.HasSuffix(job.Protection, ".") {
			t.Errorf("job %s does not state what it does with protected instances: %q", job.Name, job.Protection)
		}

		page, err := os.ReadFile("../../docs/operator/jobs/" + job.Name + ".md")
		if err != nil || !strings.Contains(string(page), "| deletion protection | ") {
			t.Errorf("the page of job %s does not: %v", job.Name, err)
		}
	}
}

// TestJobLimits checks that a limit for one job does not remove the default limits of others.
func TestJobLimits(t *testing.T) {
	config := service.Config{JobLimits: map[string]int{"leftovers": 5, "subaccounts": 0}}

	for job, want := range map[string]int{"leftovers": 5, "subaccounts": 0, "expiry": 200, "bindings": 0} {
		if got := config.JobLimit(job); got != want {
			t.Errorf("the limit of %s is %d, want %d", job, got, want)
		}
	}
}
