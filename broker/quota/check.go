package quota

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// Checker checks the current quotas. The zero value has no quotas.
type Checker struct {
	// DB is the database of Instances.
	DB        *storage.DB
	Instances *instances.Store
	// Current returns the current quotas. Nil means that there are no quotas.
	Current func() Quotas
	// Metrics counts rejected requests. Nil disables counting.
	Metrics *Metrics
}

// quotas returns the current quotas, or none if Current is nil.
func (c Checker) quotas() Quotas {
	if c.Current == nil {
		return nil
	}

	return c.Current()
}

// Concerns reports whether a quota could reject the new instance.
func (c Checker) Concerns(instance environment.Instance) bool {
	return len(c.quotas().grown(environment.Instance{}, instance)) > 0
}

// Create returns an ExceededError if the new instance would exceed a quota. The caller must store the instance in the same
// transaction: until it ends, no other transaction can add an instance to the same groups.
func (c Checker) Create(ctx context.Context, tx storage.Tx, instance environment.Instance) error {
	return c.Change(ctx, tx, environment.Instance{}, instance)
}

// Change returns an ExceededError if changing an instance would exceed a quota. As with Create, the caller must store the change
// in the same transaction. Change checks only the quotas in which the instance joins a group. An instance can thus change even if
// the group that it already belongs to is over its quota.
func (c Checker) Change(ctx context.Context, tx storage.Tx, before, after environment.Instance) error {
	grown := c.quotas().grown(before, after)
	if len(grown) == 0 {
		return nil
	}

	groups := make([]instances.QuotaGroup, 0, len(grown))
	for _, quota := range grown {
		groups = append(groups, instances.QuotaGroup(quota.GroupOf(after)))
	}

	if err := c.Instances.LockQuotas(ctx, tx, groups...); err != nil {
		return err
	}

	err := c.look(ctx, tx, grown, after)
	if exceeded, is := errors.AsType[*ExceededError](err); is {
		c.Metrics.refused(exceeded.Quota.Name)
	}

	return err
}

// Look is Create without locks, for requests that store nothing.
func (c Checker) Look(ctx context.Context, instance environment.Instance) error {
	grown := c.quotas().grown(environment.Instance{}, instance)
	if len(grown) == 0 {
		return nil
	}

	return c.look(ctx, c.DB.Reader(), grown, instance)
}

func (c Checker) look(ctx context.Context, tx storage.Tx, quotas Quotas, instance environment.Instance) error {
	for _, quota := range quotas {
		group := quota.GroupOf(instance)
		limit := quota.LimitOf(group)

		used, err := c.used(ctx, tx, quota, group)
		if err != nil {
			return err
		}

		if used >= limit {
			return &ExceededError{Quota: quota, Used: used, Limit: limit}
		}
	}

	return nil
}

// used returns the number of instances in a group.
func (c Checker) used(ctx context.Context, tx storage.Tx, quota Quota, group Group) (int, error) {
	counts, err := c.Instances.Usage(ctx, tx, usageOf(quota, group))
	if err != nil || len(counts) == 0 {
		return 0, err
	}

	return counts[0].Used, nil
}

// usageOf returns the query that counts the instances of one group.
func usageOf(quota Quota, group Group) instances.Usage {
	return instances.Usage{Equal: quota.columns(), Of: instances.QuotaGroup(group), PlanIDs: quota.Plans, Regions: quota.Regions}
}
