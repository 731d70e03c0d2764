// Package webhooks stores the receivers of events, and the events that each of them has not received yet.
//
// A webhook has a position in the log of package eventlog. The replica that has its lease turns the next events into deliveries and
// advances the position, in one transaction. A delivery is removed when the receiver has confirmed it. If the last attempt fails, it
// stays as a dead letter. Deliveries of the same subject are due one after the other.
package webhooks
