package kymaresource

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// checkInterval is the pause between two reads of the Kyma resource's status.
const checkInterval = 10 * time.Second

// CheckKyma returns the step that waits until Lifecycle Manager has installed Kyma. Lifecycle Manager retries by itself, so the
// step keeps waiting while the state is Error. If Apply_Kyma was skipped, the step has nothing to do.
func CheckKyma(options Options) Step {
	return process.StepFunc("Check_Kyma_Resource",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			object, err := options.Records.FindObject(ctx, operation.InstanceID, environment.SystemLifecycleManager, environment.KindKymaResource)
			if err != nil || object.State == "" || options.Client == nil {
				return operation, 0, err
			}

			ref, err := lifecyclemanager.ParseRef(object.Key)
			if err != nil {
				return operation, 0, err
			}

			status, err := options.Client.Status(ctx, ref)

			switch {
			case failure.Is(err, failure.NotFound):
				return process.RetryOperation(operation, "", failure.Wrap(failure.Transient, err,
					"the Kyma resource of the runtime is missing from the control plane: somebody has deleted it").
					WithReason(failure.ReasonInternal, failure.ComponentLifecycleManager), checkInterval, options.Limit)
			case err != nil:
				return retry(operation, err)
			case status.Done():
				if status.State != lifecyclemanager.Ready {
					operation = process.Noted(operation, status.Describe())
				}

				operation.Description = "Kyma is installed"

				return operation, 0, nil
			case operation.Elapsed() >= options.Limit:
				return operation, 0, failure.New(failure.Permanent, "Lifecycle Manager has not installed Kyma within %s", options.Limit).
					WithReason(failure.ReasonTimeout, failure.ComponentLifecycleManager).WithDetail(status.Describe())
			default:
				return process.Await(operation, status.Describe(), checkInterval, options.Limit)
			}
		})
}

// CheckNotes describes the step that CheckKyma returns.
func (o Options) CheckNotes() process.Notes {
	return process.Notes{Does: "Waits until Lifecycle Manager has installed the modules.", System: System, Limit: o.Limit}
}
