// Package subaccounts contains the job that deletes the instances whose subaccounts were deleted in SAP Cloud Management.
package subaccounts
