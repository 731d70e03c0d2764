// Package edp registers subaccounts in the Event Data Platform (EDP), which meters their consumption.
//
// A registration is a data tenant, named by the subaccount and an environment, with four metadata entries. All instances of a
// subaccount share it. Register and Deregister are idempotent: Register creates only missing objects, and Deregister ignores
// missing objects.
package edp
