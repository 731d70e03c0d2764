// Package webhooks stores the receivers of events, and what each of them has not received yet.
//
// A webhook has a position in the log of package eventlog. Its replica turns the next events into deliveries and moves the position, in one
// transaction. A delivery is removed when the receiver has confirmed it, or stays as a dead letter after the last attempt. Deliveries of one
// subject are due one after the other.
package webhooks
