package service

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/notify"
	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/upgrading"
	"github.com/environment-broker/environment-broker/storage/eventlog"
)

const (
	// notificationsKept is how long messages are kept. notificationsSwept is the interval at which older messages are removed.
	notificationsKept  = 7 * 24 * time.Hour
	notificationsSwept = time.Hour
)

// announcer implements upgrading.Notifications with the event log.
type announcer struct {
	events *eventlog.Store
	clock  clock.PassiveClock
}

// NewNotifications returns Notifications that record the start of each maintenance in the event log.
func NewNotifications(events *eventlog.Store, clock clock.PassiveClock) upgrading.Notifications {
	return announcer{events, clock}
}

// Announce implements upgrading.Notifications. A lost lease is a transient error, because the replica that holds the lease runs
// the step.
func (n announcer) Announce(ctx context.Context, by process.Record) error {
	err := n.events.StartMaintenance(ctx, by, n.clock.Now())
	if errors.Is(err, process.ErrLeaseLost) {
		return failure.Wrap(failure.Transient, err, "another replica has taken over the operation")
	}

	return explain(err, "the start of the maintenance")
}

// connectNotifications connects the notification service if it is configured. Old messages are removed even if the service is not
// configured.
func (s *Service) connectNotifications(connected *upstreams, config notification.Config, stores stores, wake func()) error {
	metrics := notify.NewMetrics(stores.notifications, clock.RealClock{}, s.Log)
	s.Metrics().MustRegister(metrics)

	connected.parts = append(connected.parts, lifecycle.Periodic{
		Name: "notification retention", Every: notificationsSwept, Clock: clock.RealClock{}, Log: s.Log,
		Work: func(ctx context.Context) error {
			_, err := stores.notifications.Remove(ctx, time.Now().Add(-notificationsKept))

			return err
		},
	}.Part())

	if !config.Enabled() {
		return nil
	}

	system, transport, err := s.connect(upstream.Options{
		Name: "notification", Title: "the notification service", Component: failure.ComponentNotification, Calls: config.Calls,
		Variable: "APP_NOTIFICATION_CALLS",
	})
	if err != nil {
		return err
	}

	client := notification.New(config, transport)
	delivery := notify.New(notify.Options{
		Store: stores.notifications, Events: stores.eventLog, Send: client.Send, Timeout: config.Timeout, Calls: config.Calls, Metrics: metrics,
		Clock: clock.RealClock{}, Log: s.Log,
	})

	connected.notifications = NewNotifications(stores.eventLog, clock.RealClock{})
	connected.add(system, delivery.Part(), s.recovery("the notification service", system, client.Probe, stores, wake))

	return nil
}
