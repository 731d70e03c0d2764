// Package webhooks stores webhooks, which are receivers of events, and the events that each of them has not received yet.
//
// A webhook has a position in the log of package eventlog. The replica that has the webhook's lease turns the next events into
// deliveries and advances the position, in one transaction. A delivery is removed when the receiver has confirmed it. If the last
// attempt fails, the delivery stays as a dead letter. Deliveries with the same subject are sent one after the other.
package webhooks
