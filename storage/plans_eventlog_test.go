package storage_test

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/notifications"
)

func (s stores) eventlogCalls() map[string]call {
	calls := map[string]call{
		"eventlog.Publish": func(ctx context.Context) error {
			_, err := s.eventlog.Publish(ctx, filledAt)

			return err
		},
		"eventlog.Head": func(ctx context.Context) error {
			_, err := s.eventlog.Head(ctx)

			return err
		},
		"eventlog.RemoveBefore": func(ctx context.Context) error {
			_, err := s.eventlog.RemoveBefore(ctx, filledAt.Add(-60*24*time.Hour), page)

			return err
		},
		"eventlog.CountErasable": func(ctx context.Context) error {
			_, err := s.eventlog.CountErasable(ctx, "account-10")

			return err
		},
		"eventlog.Erase": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.eventlog.Erase(ctx, tx, "account-10")

			return err
		}),
	}

	for name, filter := range map[string]eventlog.Filter{
		"all": {}, "of an instance": {InstanceID: "i77"}, "of an account": {Account: "account-10"}, "of no account": {Account: "none"},
		"of a kind": notifications.Selected(), "of a type": {Types: []eventlog.Type{eventlog.OperationFailed, eventlog.OperationSucceeded}},
	} {
		calls["eventlog.Read "+name] = func(ctx context.Context) error {
			_, _, err := s.eventlog.Read(ctx, filter, 50_000, page)

			return err
		}
	}

	return calls
}
