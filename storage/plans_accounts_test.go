package storage_test

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
)

func (s stores) accountCalls() map[string]call {
	key := accountpool.Key{Tenant: "t100", Type: "aws_100"}

	return map[string]call{
		"accounts.Use": func(ctx context.Context) error {
			_, _, err := s.accounts.Use(ctx, "i100")

			return err
		},
		"accounts.Join": func(ctx context.Context) error {
			_, err := s.accounts.Join(ctx, "i-new", key)

			return err
		},
		"accounts.Holds": func(ctx context.Context) error {
			_, err := s.accounts.Holds(ctx, "i100", accountpool.Claim{Key: key, Account: "a100"})

			return err
		},
		"accounts.Reserve": func(ctx context.Context) error {
			_, err := s.accounts.Reserve(ctx, key, "a-new")

			return err
		},
		"accounts.Drop": func(ctx context.Context) error { return s.accounts.Drop(ctx, key, "a100") },
		"accounts.Reserved": func(ctx context.Context) error {
			_, err := s.accounts.Reserved(ctx, "aws_100")

			return err
		},
		"accounts.Share": func(ctx context.Context) error {
			return s.accounts.Share(ctx, accountpool.Use{InstanceID: "i101", Key: key, Shared: true, Account: "s1"})
		},
		"accounts.SharedUses": func(ctx context.Context) error {
			_, err := s.accounts.SharedUses(ctx)

			return err
		},
		"accounts.Leave": func(ctx context.Context) error { return s.accounts.Leave(ctx, "i102") },
		"accounts.BeginRelease": func(ctx context.Context) error {
			_, _, err := s.accounts.BeginRelease(ctx, "i103", accountpool.Key{Tenant: "t103", Type: "aws_103"})

			return err
		},
		"accounts.EndRelease": func(ctx context.Context) error {
			return s.accounts.EndRelease(ctx, "i103", accountpool.Claim{Key: accountpool.Key{Tenant: "t103", Type: "aws_103"}, Account: "a103"}, false)
		},
		"accounts.Abandoned": func(ctx context.Context) error {
			_, _, err := s.accounts.Abandoned(ctx)

			return err
		},
		"accounts.Track": func(ctx context.Context) error {
			return s.accounts.Track(ctx, []accountpool.Account{{Name: "a1", Type: "aws_1"}}, filledAt)
		},
		"accounts.Cleanups": func(ctx context.Context) error {
			_, err := s.accounts.Cleanups(ctx)

			return err
		},
		"accounts.Answered": func(ctx context.Context) error {
			return s.accounts.Answered(ctx, accountpool.Cleanup{Account: "a1", NextAt: filledAt})
		},
		"accounts.List": func(ctx context.Context) error {
			_, _, err := s.accounts.List(ctx)

			return err
		},
	}
}
