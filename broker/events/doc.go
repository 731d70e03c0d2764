// Package events publishes the events of package eventlog to the consumers in this replica.
//
// Each replica publishes new events twice a second, and wakes its consumers when the log has grown, even if another replica has
// published the events. Consumers read the log from the position that they have reached, so they miss nothing if they are woken
// late or the replica restarts.
package events
