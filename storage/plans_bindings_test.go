package storage_test

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
)

func (s stores) bindingCalls() map[string]call {
	binding := environment.Binding{
		ID: "new", InstanceID: "i10", BindingID: "new", State: environment.BindingCreating, OperationID: "p10",
		CreatedAt: filledAt, ExpiresAt: filledAt,
	}

	return map[string]call{
		"bindings.Insert": s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.bindings.Insert(ctx, tx, binding) }),
		"bindings.Get": func(ctx context.Context) error {
			_, err := s.bindings.Get(ctx, s.db.Reader(), "i10", "none")

			return err
		},
		"bindings.Newest": func(ctx context.Context) error {
			_, err := s.bindings.Newest(ctx, s.db.Reader(), binding.InstanceID, binding.BindingID)

			return err
		},
		"bindings.Creations": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.bindings.Creations(ctx, tx, binding.InstanceID)

			return err
		}),
		"bindings.SaveAccess": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			return s.bindings.SaveAccess(ctx, tx, environment.Binding{ID: "b10"}, environment.Access{ExpiresAt: filledAt})
		}),
		"bindings.MarkDeleting": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.bindings.MarkDeleting(ctx, tx, binding, "p11")

			return err
		}),
		"bindings.Delete": s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.bindings.Delete(ctx, tx, "b11") }),
		"bindings.Wanted": func(ctx context.Context) error {
			_, err := s.bindings.Wanted(ctx, "b12")

			return err
		},
		"bindings.CountLive": func(ctx context.Context) error {
			_, err := s.bindings.CountLive(ctx, s.db.Reader(), "i10", "r10", filledAt)

			return err
		},
		"bindings.OfInstance": func(ctx context.Context) error {
			_, err := s.bindings.OfInstance(ctx, "i10")

			return err
		},
		"bindings.Removable": func(ctx context.Context) error {
			_, err := s.bindings.Removable(ctx, filledAt.Add(-24*time.Hour), filledAt.Add(-25*time.Hour), 500)

			return err
		},
	}
}
