// Package cis reads the events about deleted subaccounts from SAP Cloud Management (CIS, version 2).
package cis
