package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// expireAtOnce bounds how many bindings are taken in one look.
	expireAtOnce = 500
	// removeAgain is how long a binding is left alone whose removal failed: its runtime may never answer.
	removeAgain = time.Hour
)

// ExpireBindings has the bindings removed whose credentials have ended, or whose creation failed. Replicas that do this at the same
// time pass by each other: each binding gets one operation.
func ExpireBindings(ctx context.Context, options Options) error {
	now := options.Clock.Now()

	over, err := options.Bindings.Over(ctx, now, now.Add(-removeAgain), expireAtOnce)
	if err != nil || len(over) == 0 {
		return err
	}

	var failures []error

	for _, binding := range over {
		if err := options.expire(ctx, binding); err != nil {
			failures = append(failures, fmt.Errorf("removing binding %s: %w", binding.ID, err))
		}
	}

	options.Wake()

	return errors.Join(failures...)
}

func (o Options) expire(ctx context.Context, binding environment.Binding) error {
	err := o.DB.InTx(ctx, func(tx storage.Tx) error {
		instance, err := o.Instances.Get(ctx, tx, binding.InstanceID)
		if err != nil {
			return err
		}

		_, err = o.endBinding(ctx, tx, instance, binding)

		return err
	})
	if errors.Is(err, errOvertaken) || errors.Is(err, storage.ErrNotFound) || storage.IsDuplicate(err) {
		return nil // somebody else removes it, or it went with its instance
	}

	return err
}
