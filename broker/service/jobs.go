package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/cleanup"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/broker/poolcleanup"
	"github.com/environment-broker/environment-broker/broker/subaccounts"
)

// jobs returns the runner of the broker's jobs, and registers their metrics.
func (s *Service) jobs(config Config, stores stores, connected upstreams, expirer expiry.Expirer, cleaner cleanup.Cleaner, osb broker.Options,
) jobs.Runner {
	runner := jobs.Runner{Reports: stores.reports, Clock: clock.RealClock{}, Log: s.Log, Jobs: []jobs.Job{
		expirer.Job(config.JobLimit("expiry")),
		cleaner.Job(config.JobLimit("leftovers")),
		broker.ExpiryOfBindings(osb, config.JobLimit("bindings")),
	}}

	runner.Protected = func(ctx context.Context, instanceID string) (bool, error) {
		return broker.Protected(ctx, osb, instanceID)
	}

	if connected.pool != nil {
		runner.Jobs = append(runner.Jobs, connected.pool.cleaner.Job(config.JobLimit("accounts")))
	}

	if connected.cis != nil {
		deleter := subaccounts.Cleaner{
			Events: connected.cis, DB: s.DB, Instances: stores.instances, Operations: stores.operations, Reports: stores.reports, Clock: clock.RealClock{},
			Delete: func(ctx context.Context, id, reason string) (bool, error) {
				return broker.DeleteWithSubaccount(ctx, osb, id, reason)
			},
		}
		runner.Jobs = append(runner.Jobs, deleter.Job(config.CIS.Interval, config.JobLimit(subaccounts.Name)))
	}

	for i := range runner.Jobs {
		if at, daily := config.JobTimes[runner.Jobs[i].Name]; daily {
			moment, _ := jobs.ParseDaily(at) // checked by Config.Check
			runner.Jobs[i].Daily = &moment
		}
	}

	runner.Metrics = jobs.NewMetrics(s.Metrics(), runner)

	return runner
}

// defaultJobLimits returns the limits of jobs that APP_JOB_LIMITS does not name.
func defaultJobLimits() map[string]int { return map[string]int{"expiry": 200, "subaccounts": 50} }

// JobLimit returns how many items a run of the job may change without confirmation, or 0 for no limit.
func (c Config) JobLimit(job string) int {
	if limit, set := c.JobLimits[job]; set {
		return limit
	}

	return defaultJobLimits()[job]
}

// checkJobs checks the limits and the times of jobs.
func (c Config) checkJobs() error {
	known := []string{
		expiry.Expirer{}.Job(0).Name, cleanup.Cleaner{}.Job(0).Name, broker.ExpiryOfBindings(broker.Options{}, 0).Name, poolcleanup.Cleaner{}.Job(0).Name,
		subaccounts.Name,
	}

	var errs []error

	for _, name := range slices.Sorted(maps.Keys(c.JobLimits)) {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("APP_JOB_LIMITS: there is no job %q; the jobs are %s", name, strings.Join(known, ", ")))
		}

		if c.JobLimits[name] < 0 {
			errs = append(errs, fmt.Errorf("APP_JOB_LIMITS: the limit of %s must not be negative", name))
		}
	}

	for _, name := range slices.Sorted(maps.Keys(c.JobTimes)) {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("APP_JOB_TIMES: there is no job %q; the jobs are %s", name, strings.Join(known, ", ")))
		}

		if _, err := jobs.ParseDaily(c.JobTimes[name]); err != nil {
			errs = append(errs, fmt.Errorf("APP_JOB_TIMES: %s: %w", name, err))
		}
	}

	return errors.Join(errs...)
}
