// Package webhooks delivers events to webhooks.
//
// One replica at a time delivers the events of a webhook. Each webhook has its own lease, which outlasts every call. Webhooks are
// independent: a slow receiver delays only its own events. The events of one subject, such as an instance, are sent one after
// another; events of different subjects are sent concurrently. An unconfirmed event is sent again after growing pauses, and
// becomes a dead letter after the last attempt. Only then does the next event of its subject follow.
//
// Events are delivered at least once: if a response is lost, or the replica dies before it has recorded the delivery, the same
// message is sent again with the same ID.
package webhooks
