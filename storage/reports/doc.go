// Package reports stores the newest result of each periodic report of a service, and determines which replica creates the next
// one.
package reports
