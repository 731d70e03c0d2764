// Package subaccounts deletes the instances of subaccounts that were deleted at SAP Cloud Management, in a job.
package subaccounts
