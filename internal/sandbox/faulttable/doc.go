// Package faulttable reads the tables of faults in docs/operator/integrations, so that tests can compare the texts that a system's fault
// causes with the page that operators read. It is for tests only.
package faulttable
