// Package cis reads events of SAP Cloud Management (CIS, version 2): which subaccounts were deleted.
package cis
