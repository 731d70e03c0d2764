// Package notify turns events of the log into messages, and delivers these to the notification service.
//
// One replica delivers, under a lease. It sends the messages of one event one after another, and messages of different
// events concurrently. It sends a message again for five minutes while the service is unavailable, and then gives up. If the
// service rejects the message, it gives up immediately. An upgrade never waits for a delivery.
//
// Messages are delivered at least once: if the response is lost, or the replica dies before it has recorded the delivery, the
// same message is sent again. The service can recognize a repeated message by its event ID, state and time. A message is sent
// only after the delivery of all earlier messages of the same event has ended. The lease outlasts every call, so two replicas
// never send at the same time.
package notify
