package storage_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/outbox"
)

func (s stores) outboxCalls() map[string]call {
	by := process.Record{
		ID: "p100", Kind: environment.KindUpgradeKyma, State: process.Succeeded, FinishedAt: filledAt, Payload: json.RawMessage(`{}`), NextRun: filledAt,
		Lease: process.Lease{Owner: "replica", Fence: 1},
	}
	ended := by
	ended.ID = "p90"
	message := outbox.Pending{Message: notification.Message{EventID: "p100"}, Number: 1}

	return map[string]call{
		"outbox.Begin": func(ctx context.Context) error { return s.outbox.Begin(ctx, by, filledAt) },
		"outbox.Hold": func(ctx context.Context) error {
			_, err := s.outbox.Hold(ctx, "replica", filledAt, filledAt.Add(time.Minute))

			return err
		},
		"outbox.ReturnLease": func(ctx context.Context) error { return s.outbox.ReturnLease(ctx, "replica") },
		"outbox.Due": func(ctx context.Context) error {
			_, err := s.outbox.Due(ctx, filledAt, page)

			return err
		},
		"outbox.Attempt": func(ctx context.Context) error {
			_, err := s.outbox.Attempt(ctx, message, filledAt)

			return err
		},
		"outbox.Retry": func(ctx context.Context) error { return s.outbox.Retry(ctx, message, filledAt) },
		"outbox.End": func(ctx context.Context) error {
			_, err := s.outbox.End(ctx, message, true, filledAt)

			return err
		},
		"outbox.Backlog": func(ctx context.Context) error {
			_, _, err := s.outbox.Backlog(ctx)

			return err
		},
		"outbox.Remove": func(ctx context.Context) error {
			_, err := s.outbox.Remove(ctx, filledAt.Add(-60*24*time.Hour))

			return err
		},
		"operations.Save of an upgrade": func(ctx context.Context) error {
			_, err := s.operations.Save(ctx, process.Progress{Record: ended, Release: true, Now: filledAt})

			return err
		},
	}
}
