// Package webhooks delivers events to webhooks.
//
// Each webhook is delivered by one replica at a time, under a lease of its own that outlasts every call, and independently of the others: a
// slow receiver delays only its own events. The events of a subject, such as an instance, are sent one after the other; those of different
// subjects concurrently. An event that is not confirmed is sent again after growing pauses, and becomes a dead letter after the last attempt. The
// next event of its subject follows then.
//
// Events are delivered at least once: if a response is lost, or the replica dies before it has recorded the delivery, the same message is sent
// again, with the same ID.
package webhooks
