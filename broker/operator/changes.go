package operator

import (
	"context"
	"errors"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// readChange returns the body of a request to change an instance, and the instance ID from the request path. It also adds the ID
// to the log entry of the request. shape is the error message for an invalid body; it should contain an example of a valid one.
func readChange[Body any](r *http.Request, shape string) (id string, body Body, err error) {
	if id, err = operatorserver.Segment(r, "instance_id"); err != nil {
		return "", body, err
	}

	httpserver.Note(r.Context(), logging.InstanceID, id)

	return id, body, operatorserver.ReadStrictly(r.Body, &body, shape)
}

// locked calls work in a transaction that holds the instance's lock, so that concurrent changes run one after another. If the
// instance does not exist, the error is a 404 response.
func (a *API) locked(ctx context.Context, id string, work func(tx storage.Tx) error) error {
	err := a.DB.InTx(ctx, func(tx storage.Tx) error {
		present, err := a.Instances.Lock(ctx, tx, id)
		if err == nil && !present {
			err = storage.ErrNotFound
		}

		if err != nil {
			return err
		}

		return work(tx)
	})
	if errors.Is(err, storage.ErrNotFound) {
		err = operatorserver.NotFound(textNoInstance)
	}

	return err
}

// changeInstance changes an instance. The same transaction records the entry in the audit log, with the fields that have changed.
// If change returns an equal instance, changeInstance stores and records nothing.
func (a *API) changeInstance(ctx context.Context, id string, entry auditlog.Entry,
	store func(context.Context, storage.Tx, environment.Instance) error,
	change func(environment.Instance) (environment.Instance, error),
) (changed environment.Instance, err error) {
	err = a.locked(ctx, id, func(tx storage.Tx) error {
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

	return changed, err
}
