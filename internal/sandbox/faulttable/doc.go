// Package faulttable reads the tables of faults in docs/operator/integrations, so that tests can compare what a system's fault shows with
// the page that operators read. It is for tests only.
package faulttable
