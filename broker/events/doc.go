// Package events publishes the events of package eventlog to their consumers in this replica.
//
// Each replica publishes new events every second, and wakes its consumers when the log has grown, whichever replica has published. The
// consumers read the log from the positions that they have reached, so they miss nothing if they are woken late, or if the replica restarts.
package events
