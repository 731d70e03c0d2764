package operator

import (
	"context"
	"errors"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// changeInstance changes an instance in a transaction that also records the entry, with the difference. It locks the instance first, so
// that concurrent changes run one after another. If change returns an equal instance, changeInstance stores and records nothing.
func (a *api) changeInstance(ctx context.Context, id string, entry auditlog.Entry,
	store func(context.Context, storage.Tx, environment.Instance) error,
	change func(environment.Instance) (environment.Instance, error),
) (changed environment.Instance, err error) {
	err = a.DB.InTx(ctx, func(tx storage.Tx) error {
		present, err := a.Instances.Lock(ctx, tx, id)
		if err == nil && !present {
			err = storage.ErrNotFound
		}

		if err != nil {
			return err
		}

		instance, err := a.Instances.Get(ctx, tx, id)
		if err != nil {
			return err
		}

		if changed, err = change(instance); err != nil {
			return err
		}

		entry.Before, entry.After = auditlog.Difference(instance.Shown(), changed.Shown())
		if len(entry.Before)+len(entry.After) == 0 {
			return nil
		}

		if err := store(ctx, tx, changed); err != nil {
			return err
		}

		entry.InstanceID, entry.Status = id, http.StatusOK

		return a.Recorder.Record(ctx, tx, entry)
	})
	if errors.Is(err, storage.ErrNotFound) {
		err = operatorserver.NotFound(textNoInstance)
	}

	return changed, err
}
