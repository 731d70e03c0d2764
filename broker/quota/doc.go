// Package quota limits how many instances tenants may have, in total or in each plan and region.
//
// A file lists the quotas. A Checker checks them in the transaction that stores a new instance, or that changes the account or
// the plan of an instance. It first locks the groups that the quotas count, so that concurrent requests on several replicas
// cannot exceed a quota. An instance counts until its deletion has succeeded. Quotas do not affect existing instances, even if
// there are more than a quota allows.
package quota
