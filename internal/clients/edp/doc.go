// Package edp registers subaccounts in the Event Data Platform (EDP), which meters their consumption.
//
// A registration consists of a data tenant and its four metadata entries. The ID of the subaccount and the configured environment
// of EDP identify the data tenant. All instances of a subaccount share its registration. Register and Deregister are idempotent:
// Register creates only missing objects, and Deregister ignores missing objects.
package edp
