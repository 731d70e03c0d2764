package service

import (
	"fmt"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/internal/program/reload"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// loadQuotas reads the file with the quotas, adds it to the watched files, and registers the metrics of the quotas. If the file becomes
// invalid while the broker runs, the error is reported and the quotas do not change. An empty path means no quotas.
func (s *Service) loadQuotas(path string, plans *catalog.Catalog, instances *instances.Store) (quota.Checker, error) {
	checker := quota.Checker{DB: s.DB, Instances: instances, Current: func() quota.Quotas { return nil }}

	if path != "" {
		quotas, err := reload.Load("quotas", func(contents [][]byte) (quota.Quotas, error) {
			return quota.Parse(contents[0], planOf(plans))
		}, path)
		if err != nil {
			return quota.Checker{}, fmt.Errorf("APP_QUOTAS_FILE: %w", err)
		}

		reload.Watch(s.Access.Files, quotas, nil)

		checker.Current = quotas.Get
	}

	checker.Metrics = quota.NewMetrics(s.Metrics(), checker, clock.RealClock{}, s.Log)

	return checker, nil
}

// planOf returns a function that looks up a name or ID of a plan in the current catalog and returns the ID of the plan.
func planOf(plans *catalog.Catalog) quota.Plan {
	return func(nameOrID string) (string, bool) {
		for _, plan := range plans.Plans() {
			if plan.Name == nameOrID || plan.ID == nameOrID {
				return plan.ID, true
			}
		}

		return "", false
	}
}
