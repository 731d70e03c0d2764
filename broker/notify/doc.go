// Package notify delivers the messages of package outbox to the notification service.
//
// One replica delivers, under a lease. The messages of an event are sent one after the other, those of different events concurrently. A
// message that cannot be sent is repeated for five minutes and then given up. An upgrade never waits for a delivery.
//
// Messages are delivered at least once: if the response is lost, or the replica dies before it has recorded the delivery, the same
// message is sent again. It has the same event ID, state and time, by which the service can recognize it. A message is never sent before
// an earlier one of its event has ended. The lease outlasts every call, so that two replicas do not send at the same time.
package notify
