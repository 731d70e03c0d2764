package storage_test

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

func (s stores) webhookCalls() map[string]call {
	created := webhooks.Webhook{ID: "new", URL: "https://example.com", Secrets: webhooks.Secrets{Current: "whsec_"}, CreatedAt: filledAt}
	delivery := webhooks.Delivery{WebhookID: "w8", Event: eventlog.Event{Position: 7, InstanceID: "i7"}, NextAt: filledAt}

	// sealed returns a call that first seals the content of a webhook again, because its key is not in the keyring, and then calls work.
	sealed := func(work func(ctx context.Context, tx storage.Tx, webhook webhooks.Webhook) error) call {
		return s.inTx(func(ctx context.Context, tx storage.Tx) error {
			webhook := created
			webhook.ID = "w7"

			if err := s.webhooks.SetSecrets(ctx, tx, webhook); err != nil {
				return err
			}

			return work(ctx, tx, webhook)
		})
	}

	return map[string]call{
		"webhooks.Create":     s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.webhooks.Create(ctx, tx, created) }),
		"webhooks.SetSecrets": sealed(func(context.Context, storage.Tx, webhooks.Webhook) error { return nil }),
		"webhooks.Get": sealed(func(ctx context.Context, tx storage.Tx, webhook webhooks.Webhook) error {
			_, err := s.webhooks.Get(ctx, tx, webhook.ID)

			return err
		}),
		"webhooks.Lock": sealed(func(ctx context.Context, tx storage.Tx, webhook webhooks.Webhook) error {
			_, err := s.webhooks.Lock(ctx, tx, webhook.ID)

			return err
		}),
		"webhooks.Current": func(ctx context.Context) error {
			_, _ = s.webhooks.Current(ctx, "w7") // cannot be decrypted

			return nil
		},
		"webhooks.List": func(ctx context.Context) error {
			_, _ = s.webhooks.List(ctx) // cannot be decrypted

			return nil
		},
		"webhooks.LockCount": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.webhooks.LockCount(ctx, tx)

			return err
		}),
		"webhooks.Delete": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.webhooks.Delete(ctx, tx, "w9")

			return err
		}),
		"webhooks.Enable":  s.inTx(func(ctx context.Context, tx storage.Tx) error { return s.webhooks.Enable(ctx, tx, "w7", filledAt) }),
		"webhooks.Disable": func(ctx context.Context) error { return s.webhooks.Disable(ctx, "w7", "gone", filledAt) },
		"webhooks.Hold": func(ctx context.Context) error {
			_, err := s.webhooks.Hold(ctx, "w7", "replica", filledAt, filledAt.Add(time.Minute))

			return err
		},
		"webhooks.ReturnLease": func(ctx context.Context) error { return s.webhooks.ReturnLease(ctx, "w7", "replica") },
		"webhooks.Count": func(ctx context.Context) error {
			_, err := s.webhooks.Count(ctx, "w7", false, page)

			return err
		},
		"webhooks.Count of dead letters": func(ctx context.Context) error {
			_, err := s.webhooks.Count(ctx, "w7", true, page)

			return err
		},
		"webhooks.Add": func(ctx context.Context) error {
			_, err := s.webhooks.Add(ctx, webhooks.Webhook{ID: "w7", Position: 110000}, "replica", []eventlog.Event{{Position: 109999}}, 110001, filledAt)

			return err
		},
		"webhooks.Due": func(ctx context.Context) error {
			_, err := s.webhooks.Due(ctx, "w7", filledAt, page)

			return err
		},
		"webhooks.Attempt": func(ctx context.Context) error {
			_, err := s.webhooks.Attempt(ctx, delivery, filledAt)

			return err
		},
		"webhooks.Fail": func(ctx context.Context) error { return s.webhooks.Fail(ctx, delivery) },
		"webhooks.Deliver": func(ctx context.Context) error {
			_, err := s.webhooks.Deliver(ctx, delivery, filledAt)

			return err
		},
		"webhooks.Undelivered": func(ctx context.Context) error {
			_, err := s.webhooks.Undelivered(ctx, "w7", true, 100, page)

			return err
		},
		"webhooks.Replay": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.webhooks.Replay(ctx, tx, "w7", webhooks.Replayed{}, filledAt)

			return err
		}),
		"webhooks.Replay of pending deliveries": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.webhooks.Replay(ctx, tx, "w7", webhooks.Replayed{Pending: true}, filledAt)

			return err
		}),
		"webhooks.Replay of one": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.webhooks.Replay(ctx, tx, "w7", webhooks.Replayed{Position: 10}, filledAt)

			return err
		}),
		"webhooks.Backlog": func(ctx context.Context) error {
			_, err := s.webhooks.Backlog(ctx)

			return err
		},
	}
}
