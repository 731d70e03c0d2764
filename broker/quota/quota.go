package quota

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// Unlimited is the limit for tenants that may have any number of instances.
const Unlimited = -1

// The maximum number of quotas, and the maximum number of tenants with individual limits.
const (
	maxQuotas  = 100
	maxTenants = 1000
)

// The dimensions of Quota.Per.
const (
	PerAccount    = "account"
	PerSubaccount = "subaccount"
	PerPlan       = "plan"
	PerRegion     = "region"
)

// Quotas are the configured quotas, in the order of the file. They are immutable and safe for concurrent use.
type Quotas []Quota

// Quota limits the number of instances in each group. A group consists of the instances that are equal in all dimensions of Per.
type Quota struct {
	// Name identifies the quota in errors, in the operator API and in metrics.
	Name string `json:"name"`
	// Per lists the dimensions of groups. If it is empty, all instances are one group.
	Per []string `json:"per"`
	// Plans restricts the quota to instances of these plans. The file contains names or IDs; Parse converts them to IDs. Regions
	// restricts the quota to regions of cloud providers. Empty lists do not restrict it.
	Plans   []string `json:"plans"`
	Regions []string `json:"regions"`
	// Limit is the maximum number of instances in a group.
	Limit *int `json:"limit"`
	// Limits overrides Limit for single tenants. The keys are subaccounts if Per contains PerSubaccount, and accounts otherwise. The
	// value Unlimited means no limit.
	Limits map[string]int `json:"limits"`
}

// Group contains the values of a quota's dimensions. Dimensions that the quota does not have are empty.
type Group struct {
	GlobalAccountID, SubAccountID, PlanID, Region string
}

// Plan returns the ID of the plan with the given name or ID, or false if there is none.
type Plan func(nameOrID string) (string, bool)

// Parse reads the file with the quotas. It returns all errors together.
func Parse(content []byte, plan Plan) (Quotas, error) {
	var file struct {
		Quotas Quotas `json:"quotas"`
	}

	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		return nil, fmt.Errorf("decoding the quotas: %w", err)
	}

	if len(file.Quotas) > maxQuotas {
		return nil, fmt.Errorf("the file has %d quotas, but at most %d are supported", len(file.Quotas), maxQuotas)
	}

	var errs []error

	names := map[string]bool{}

	for i := range file.Quotas {
		quota := &file.Quotas[i]

		if wrong := validation.IsDNS1123Label(quota.Name); len(wrong) > 0 {
			errs = append(errs, fmt.Errorf("quota %d: the name %q is invalid: %s", i+1, quota.Name, wrong[0]))

			continue
		}

		if names[quota.Name] {
			errs = append(errs, fmt.Errorf("quota %s: another quota has the same name", quota.Name))
		}

		names[quota.Name] = true

		for _, err := range append(quota.check(), quota.resolvePlans(plan)...) {
			errs = append(errs, fmt.Errorf("quota %s: %w", quota.Name, err))
		}
	}

	return file.Quotas, errors.Join(errs...)
}

// check returns the errors in all fields except the name and the plans.
func (q *Quota) check() []error {
	var errs []error

	dimensions := []string{PerAccount, PerSubaccount, PerPlan, PerRegion}

	for i, dimension := range q.Per {
		if !slices.Contains(dimensions, dimension) {
			errs = append(errs, fmt.Errorf("per: %q is not one of %s", dimension, strings.Join(dimensions, ", ")))
		}

		if slices.Contains(q.Per[:i], dimension) {
			errs = append(errs, fmt.Errorf("per: %s is listed twice", dimension))
		}
	}

	if slices.Contains(q.Regions, "") {
		errs = append(errs, errors.New("regions: a region is empty"))
	}

	if q.Limit == nil {
		errs = append(errs, errors.New("limit is missing"))
	} else if *q.Limit < 0 {
		errs = append(errs, errors.New("limit must not be negative"))
	}

	if len(q.Limits) > 0 && q.tenant() == "" {
		errs = append(errs, errors.New("limits: per has neither account nor subaccount"))
	}

	if len(q.Limits) > maxTenants {
		errs = append(errs, fmt.Errorf("limits: %d tenants, but at most %d are supported", len(q.Limits), maxTenants))
	}

	for _, tenant := range slices.Sorted(maps.Keys(q.Limits)) {
		if tenant == "" {
			errs = append(errs, errors.New("limits: the ID of a tenant is empty"))
		}

		if q.Limits[tenant] < Unlimited {
			errs = append(errs, fmt.Errorf("limits: the limit for %s must not be negative, except %d for no limit", tenant, Unlimited))
		}
	}

	return errs
}

// resolvePlans replaces the names of plans with IDs. It returns an error for each unknown plan.
func (q *Quota) resolvePlans(plan Plan) []error {
	var errs []error

	for i, name := range q.Plans {
		id, known := plan(name)
		if !known {
			errs = append(errs, fmt.Errorf("plans: the catalog has no plan %q", name))
		}

		q.Plans[i] = id
	}

	return errs
}

// tenant returns the dimension that the keys of Limits refer to, or "" if there is none.
func (q *Quota) tenant() string {
	for _, dimension := range []string{PerSubaccount, PerAccount} {
		if slices.Contains(q.Per, dimension) {
			return dimension
		}
	}

	return ""
}

// Covers reports whether the quota counts instances of a plan in a region.
func (q *Quota) Covers(planID, region string) bool {
	return (len(q.Plans) == 0 || slices.Contains(q.Plans, planID)) && (len(q.Regions) == 0 || slices.Contains(q.Regions, region))
}

// GroupOf returns the group to which an instance belongs. The quota must cover the instance.
func (q *Quota) GroupOf(instance environment.Instance) Group {
	return q.reduce(Group{instance.GlobalAccountID, instance.SubAccountID, instance.PlanID, instance.Region})
}

// reduce clears the dimensions that the quota does not have.
func (q *Quota) reduce(group Group) Group {
	for dimension, value := range map[string]*string{
		PerAccount: &group.GlobalAccountID, PerSubaccount: &group.SubAccountID, PerPlan: &group.PlanID, PerRegion: &group.Region,
	} {
		if !slices.Contains(q.Per, dimension) {
			*value = ""
		}
	}

	return group
}

// columns returns the columns that correspond to the dimensions in Per.
func (q *Quota) columns() instances.QuotaColumns {
	return instances.QuotaColumns{
		Account: slices.Contains(q.Per, PerAccount), Subaccount: slices.Contains(q.Per, PerSubaccount),
		Plan: slices.Contains(q.Per, PerPlan), Region: slices.Contains(q.Per, PerRegion),
	}
}

// LimitOf returns the limit of a group, or Unlimited.
func (q *Quota) LimitOf(group Group) int {
	tenant := group.GlobalAccountID
	if q.tenant() == PerSubaccount {
		tenant = group.SubAccountID
	}

	if limit, own := q.Limits[tenant]; own && tenant != "" {
		return limit
	}

	return *q.Limit
}

// grown returns the quotas in which a group gains an instance when an instance changes from before to after. If before is zero,
// the instance is new. Quotas without a limit for the group are omitted.
func (q Quotas) grown(before, after environment.Instance) Quotas {
	var grown Quotas

	for _, quota := range q {
		if !quota.Covers(after.PlanID, after.Region) || quota.LimitOf(quota.GroupOf(after)) == Unlimited {
			continue
		}

		same := before.ID != "" && quota.Covers(before.PlanID, before.Region) && quota.GroupOf(before) == quota.GroupOf(after)
		if !same {
			grown = append(grown, quota)
		}
	}

	return grown
}

// ExceededError reports that a group already has as many instances as its quota allows.
type ExceededError struct {
	Quota Quota
	// Used is the number of instances in the group, and Limit the maximum.
	Used, Limit int
}

// Error describes the quota for users, who can delete an instance or ask for a higher limit. OSB clients show at most 255 characters.
func (e *ExceededError) Error() string {
	owner := map[string]string{PerAccount: "this account has", PerSubaccount: "this subaccount has"}[e.Quota.tenant()]

	used := fmt.Sprintf("%s %d instances", cmp.Or(owner, "there are"), e.Used)
	if e.Used == 1 {
		used = cmp.Or(owner, "there is") + " 1 instance"
	}

	return fmt.Sprintf(
		"The quota %s is used up: %s, and the limit is %d. Delete an instance, or ask the operator of the broker for a higher limit.",
		e.Quota.Name, used, e.Limit)
}

// Failure returns the error with which an operation of the instance fails.
func (e *ExceededError) Failure() error {
	return failure.Wrap(failure.Quota, e,
		"the quota %s is used up: %d of %d instances; delete an instance or raise the limit, then retry", e.Quota.Name, e.Used, e.Limit).
		WithReason(failure.ReasonAlreadyExists, failure.ComponentBroker)
}
