package storage_test

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/endpoints"
)

func (s stores) endpointCalls() map[string]call {
	known := environment.Instance{ID: "i10", RuntimeID: "r10"}

	return map[string]call{
		"endpoints.Get": func(ctx context.Context) error {
			_, err := s.endpoints.Get(ctx, environment.Instance{ID: "none"})
			if errors.Is(err, storage.ErrNotFound) {
				err = nil
			}

			return err
		},
		"endpoints.Set": func(ctx context.Context) error {
			return s.endpoints.Set(ctx, known, environment.Endpoint{Server: "https://api.example.com"}, filledAt)
		},
		"endpoints.AddMissing": func(ctx context.Context) error {
			_, err := s.endpoints.AddMissing(ctx, filledAt, "i10")

			return err
		},
		"endpoints.ListDue": func(ctx context.Context) error {
			_, err := s.endpoints.ListDue(ctx, filledAt, 25)

			return err
		},
		"endpoints.Postpone": func(ctx context.Context) error {
			_, err := s.endpoints.Postpone(ctx, endpoints.Due{InstanceID: "i11", At: storage.At(filledAt)}, filledAt)

			return err
		},
		"endpoints.Add":    s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.endpoints.Add(ctx, tx, "i13", filledAt) }),
		"endpoints.Remove": func(ctx context.Context) error { return s.endpoints.Remove(ctx, "i12") },
	}
}
