package reconciling

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/process"
)

const (
	// pollInterval is the pause between two requests for the status while the Reconciler works.
	pollInterval = 30 * time.Second
	// retryInterval is the pause after an error that the Reconciler repairs by itself.
	retryInterval = 10 * time.Minute
	// errorInterval is the pause after a failed request for the status.
	errorInterval = time.Minute
	// After the limit, AwaitOrRemove tries to remove the runtime from the Reconciler every removeInterval for at most
	// removeWindow.
	removeInterval = 5 * time.Second
	removeWindow   = 30 * time.Second
)

// Await waits until the Reconciler has installed the configuration in Data.ConfigurationVersion. After the limit, the operation fails.
// It is a process.RunFunc.
func (r Reconciler) Await(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	return r.await(ctx, operation, func(timedOut error) (Operation, time.Duration, error) { return operation, 0, timedOut })
}

// AwaitOrRemove is like Await, but after the limit it removes the runtime from the Reconciler before the operation fails, because the
// Reconciler would try forever.
func (r Reconciler) AwaitOrRemove(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	return r.await(ctx, operation, func(timedOut error) (Operation, time.Duration, error) {
		object, err := r.Objects.FindObject(ctx, operation.InstanceID, environment.SystemReconciler, environment.KindCluster)
		if err != nil {
			return operation, 0, err
		}

		object.Key, object.State = operation.Data.Instance.RuntimeID, environment.OutsideRemoving
		if err := r.Objects.SetObject(ctx, operation.Record, object); err != nil {
			return operation, 0, err
		}

		_, err = r.Client.Remove(ctx, object.Key)
		if err != nil && operation.Elapsed() < r.Limit+removeWindow {
			return process.RetryOperation(operation, "removing the runtime", err, removeInterval, r.Limit+removeWindow)
		}

		return operation, 0, timedOut // the deletion of the instance tries again
	})
}

func (r Reconciler) await(ctx context.Context, operation Operation, late func(timedOut error) (Operation, time.Duration, error),
) (Operation, time.Duration, error) {
	if r.Client == nil {
		return operation, 0, Off()
	}

	state, err := r.Client.Find(ctx, operation.Data.Instance.RuntimeID, operation.Data.ConfigurationVersion)
	if err == nil && state.Status == reconciler.Ready {
		return operation, 0, nil
	}

	if operation.Elapsed() >= r.Limit {
		return late(failure.Wrap(failure.Permanent, err, "the Reconciler has not installed Kyma within %s", r.Limit).
			WithReason(failure.ReasonTimeout, failure.ComponentReconciler).WithDetail(state.Report()))
	}

	if failure.Is(err, failure.Transient) {
		return process.RetryOperation(operation, "", err, restclient.RetryAfter(err, errorInterval), r.Limit)
	}

	if err != nil {
		return operation, 0, err
	}

	switch state.Status {
	case reconciler.Pending, reconciler.Reconciling:
		return process.Await(operation, "the Reconciler is installing Kyma: "+state.Report(), pollInterval, r.Limit)
	case reconciler.ErrorRetryable:
		return process.Await(operation, "the Reconciler is retrying: "+state.Report(), retryInterval, r.Limit)
	default:
		return operation, 0, GaveUp("install", state)
	}
}

// GaveUp returns the error for a status that is final. action is "install" or "remove".
func GaveUp(action string, state reconciler.State) error {
	text := "the Reconciler could not " + action + " Kyma"
	if failed := state.Failed(); failed != "" {
		text += ": components " + failed
	}

	return failure.New(failure.Permanent, "%s", text).WithReason(failure.ReasonReconcilerGaveUp, failure.ComponentReconciler).WithDetail(state.Report())
}
