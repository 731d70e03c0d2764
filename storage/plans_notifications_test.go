package storage_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/notifications"
)

func (s stores) notificationCalls() map[string]call {
	by := process.Record{
		ID: "p100", Kind: environment.KindUpgradeKyma, State: process.Succeeded, FinishedAt: filledAt, Payload: json.RawMessage(`{}`), NextRun: filledAt,
		Lease: process.Lease{Owner: "replica", Fence: 1},
	}
	ended := by
	ended.ID = "p90"
	message := notifications.Pending{Message: notification.Message{EventID: "p100"}, Number: 1}

	return map[string]call{
		"eventlog.StartMaintenance": func(ctx context.Context) error { return s.eventlog.StartMaintenance(ctx, by, filledAt) },
		"notifications.Position": func(ctx context.Context) error {
			_, err := s.notifications.Position(ctx)

			return err
		},
		"notifications.Add": func(ctx context.Context) error {
			_, err := s.notifications.Add(ctx, "", []eventlog.Event{
				{Type: eventlog.MaintenanceStarted, OperationID: "p100", At: filledAt}, {Type: eventlog.OperationFailed, OperationID: "p90", At: filledAt},
			}, 0, 1)

			return err
		},
		"notifications.Hold": func(ctx context.Context) error {
			_, err := s.notifications.Hold(ctx, "replica", filledAt, filledAt.Add(time.Minute))

			return err
		},
		"notifications.ReturnLease": func(ctx context.Context) error { return s.notifications.ReturnLease(ctx, "replica") },
		"notifications.Due": func(ctx context.Context) error {
			_, err := s.notifications.Due(ctx, filledAt, page)

			return err
		},
		"notifications.Attempt": func(ctx context.Context) error {
			_, err := s.notifications.Attempt(ctx, message, filledAt)

			return err
		},
		"notifications.Retry": func(ctx context.Context) error { return s.notifications.Retry(ctx, message, filledAt) },
		"notifications.End": func(ctx context.Context) error {
			_, err := s.notifications.End(ctx, message, true, filledAt)

			return err
		},
		"notifications.Backlog": func(ctx context.Context) error {
			_, _, err := s.notifications.Backlog(ctx)

			return err
		},
		"notifications.Remove": func(ctx context.Context) error {
			_, err := s.notifications.Remove(ctx, filledAt.Add(-60*24*time.Hour))

			return err
		},
		"operations.Save of an upgrade": func(ctx context.Context) error {
			_, err := s.operations.Save(ctx, process.Progress{Record: ended, Release: true, Now: filledAt})

			return err
		},
	}
}
