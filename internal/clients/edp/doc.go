// Package edp registers subaccounts in the Event Data Platform (EDP), which meters their consumption.
//
// A registration is a data tenant, named by the subaccount and an environment, with four metadata entries. All instances of a
// subaccount share it. Both calls of the client are idempotent: they look for existing objects and only add or remove the rest.
package edp
