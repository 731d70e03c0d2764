// Package faulttable reads the tables of faults in docs/operator/integrations. With them, tests compare the messages that a fault
// of a system really causes with the messages in the documentation. The package is for tests only.
package faulttable
