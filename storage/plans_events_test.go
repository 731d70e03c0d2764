package storage_test

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
)

func (s stores) eventCalls() map[string]call {
	record := func(result string) call {
		return s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.events.Record(ctx, tx, environment.Event{InstanceID: "i7", System: environment.SystemReconciler, Result: result, LastAt: filledAt})
		})
	}

	return map[string]call{
		"events.Record":                   record("failed"),
		"events.Record of an equal event": record("renewed"),
		"events.OfInstance": func(ctx context.Context) error {
			_, err := s.events.OfInstance(ctx, "i7")

			return err
		},
		"events.Begin": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.events.Begin(ctx, tx, "i7", environment.SystemBTPOperator, filledAt)
		}),
		"events.Begun": func(ctx context.Context) error {
			_, err := s.events.Begun(ctx, s.db.Reader(), "i7", environment.SystemBTPOperator)

			return err
		},
		"events.End": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.events.End(ctx, tx, "i7", environment.SystemBTPOperator)
		}),
		"events.Remove": s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.events.Remove(ctx, tx, "i7") }),
		"events.RemoveBefore": func(ctx context.Context) error {
			_, err := s.events.RemoveBefore(ctx, filledAt.Add(-60*24*time.Hour), page)

			return err
		},
		"events.Retention": s.events.Retention(60*24*time.Hour, clock.RealClock{}, logging.Discard()).Sweep,
	}
}
