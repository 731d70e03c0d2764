// Package cis reads the events about deleted subaccounts from SAP Cloud Management (CIS). It supports versions 1.0 and 2.0 of the
// event service.
package cis
