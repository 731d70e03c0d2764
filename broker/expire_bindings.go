package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
)

// expireAtOnce bounds how many bindings are taken in one look.
const expireAtOnce = 500

// ExpireBindings has the bindings removed whose credentials have ended, or whose creation failed. Replicas that do this at the same
// time pass by each other: each binding gets one operation.
func ExpireBindings(ctx context.Context, options Options) error {
	over, err := options.Bindings.Over(ctx, options.Clock.Now(), expireAtOnce)
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
