// Package reports stores the newest result of each periodic report of a service, and decides which replica makes the next one.
package reports
