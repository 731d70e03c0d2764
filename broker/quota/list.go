package quota

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/environment-broker/environment-broker/storage/instances"
)

// Filter selects the quotas and groups to list. Empty fields do not restrict the list.
type Filter struct {
	// Name selects the quota with this name.
	Name string
	// GlobalAccountID selects the quotas per account, with only the groups of this account. SubAccountID does the same for a
	// subaccount.
	GlobalAccountID, SubAccountID string
	// Size is the maximum number of groups to list for each quota.
	Size int
}

// Status is a quota with its fullest groups.
type Status struct {
	Quota  Quota
	Groups []GroupStatus
	// More reports that the quota has further groups.
	More bool
}

// GroupStatus says how much of its limit a group has used.
type GroupStatus struct {
	Group

	// Used is the number of instances in the group. Limit may be Unlimited.
	Used, Limit int
}

// share returns the used share of the limit. Without a limit, it is 0.
func (g GroupStatus) share() float64 {
	switch g.Limit {
	case Unlimited:
		return 0
	case 0:
		return float64(g.Used + 1) // no instances are allowed, so the group is full
	default:
		return float64(g.Used) / float64(g.Limit)
	}
}

// List returns the quotas with the groups that have used up the largest shares of their limits. It omits groups without
// instances, except in quotas for all instances.
func (c Checker) List(ctx context.Context, filter Filter) ([]Status, error) {
	var list []Status

	for _, quota := range c.quotas() {
		if filter.Name != "" && quota.Name != filter.Name ||
			filter.GlobalAccountID != "" && !slices.Contains(quota.Per, PerAccount) ||
			filter.SubAccountID != "" && !slices.Contains(quota.Per, PerSubaccount) {
			continue
		}

		status, err := c.status(ctx, quota, filter)
		if err != nil {
			return nil, err
		}

		list = append(list, status)
	}

	return list, nil
}

// status returns the fullest groups of a quota. The largest groups are the fullest ones, except for groups with individual
// limits, which a second query reads.
func (c Checker) status(ctx context.Context, quota Quota, filter Filter) (Status, error) {
	usage := instances.Usage{
		By: quota.columns(), PlanIDs: quota.Plans, Regions: quota.Regions, Limit: filter.Size + len(quota.Limits) + 1,
		Equal: instances.QuotaColumns{Account: filter.GlobalAccountID != "", Subaccount: filter.SubAccountID != ""},
		Of:    instances.QuotaGroup{GlobalAccountID: filter.GlobalAccountID, SubAccountID: filter.SubAccountID},
	}

	largest, err := c.Instances.Usage(ctx, c.DB.Reader(), usage)
	if err != nil {
		return Status{}, err
	}

	groups := map[Group]int{}
	for _, used := range largest {
		groups[Group(used.QuotaGroup)] = used.Used
	}

	if tenants := slices.Sorted(maps.Keys(quota.Limits)); len(tenants) > 0 {
		if quota.tenant() == PerSubaccount {
			usage.Subaccounts = tenants
		} else {
			usage.Accounts = tenants
		}

		usage.Limit = maxTenants

		special, err := c.Instances.Usage(ctx, c.DB.Reader(), usage)
		if err != nil {
			return Status{}, err
		}

		for _, used := range special {
			groups[Group(used.QuotaGroup)] = used.Used
		}
	}

	status := Status{Quota: quota}

	for group, used := range groups {
		status.Groups = append(status.Groups, GroupStatus{Group: group, Used: used, Limit: quota.LimitOf(group)})
	}

	slices.SortFunc(status.Groups, func(one, other GroupStatus) int {
		return cmp.Or(
			cmp.Compare(other.share(), one.share()), cmp.Compare(other.Used, one.Used), cmp.Compare(one.GlobalAccountID, other.GlobalAccountID),
			cmp.Compare(one.SubAccountID, other.SubAccountID), cmp.Compare(one.PlanID, other.PlanID), cmp.Compare(one.Region, other.Region),
		)
	})

	if len(status.Groups) > filter.Size {
		status.Groups, status.More = status.Groups[:filter.Size], true
	}

	return status, nil
}
