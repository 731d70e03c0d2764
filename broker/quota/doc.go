// Package quota limits how many instances tenants may have, together or in each plan and region.
//
// A file lists the quotas. A Checker checks them in the transaction that stores a new instance, or that changes the account or the
// plan of an instance. It locks what a quota counts first, so that concurrent requests on several replicas cannot exceed it. An
// instance counts until its deletion has succeeded. Quotas do not affect existing instances, even if there are more than a quota
// allows.
package quota
