// Package subaccounts contains the job that deletes the instances of subaccounts that were deleted in SAP Cloud Management.
package subaccounts
