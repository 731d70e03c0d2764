package service

import (
	"context"
	"encoding/json"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// LastProvisioning returns what the newest operation knew when it ended that may have ordered the instance's runtime, and the runtime
// that it had recorded even if it ended before it could know that. It is empty when the runtime was removed since.
func (r rows) LastProvisioning(ctx context.Context, instanceID string) (environment.Data, error) {
	data, err := r.ordering(ctx, instanceID)
	if err != nil {
		return data, err
	}

	instance, err := r.Find(ctx, instanceID)
	if failure.Of(err).Reason == failure.ReasonNotFound {
		return data, nil // its row is gone: only the end of the deletion is left to do
	}

	if instance.RuntimeID != "" && instance.ShootName == data.Instance.ShootName {
		data.Instance.RuntimeID = instance.RuntimeID
	}

	return data, err
}

// ordering returns the data of the operation that ordered the runtime. One that was canceled before it ordered anything is passed by:
// the one before it may have left a runtime.
func (r rows) ordering(ctx context.Context, instanceID string) (environment.Data, error) {
	past, err := r.operations.OfInstance(ctx, r.db.Reader(), instanceID)
	if err != nil {
		return environment.Data{}, explain(err, "the operations of the instance")
	}

	var newest environment.Data

	for _, operation := range past {
		if removed(operation) {
			break
		}

		if operation.Kind != environment.KindProvision && operation.Kind != environment.KindResume {
			continue
		}

		data, err := r.dataOf(ctx, operation.ID)
		if err != nil || data.Ordered {
			return data, err
		}

		if newest.Provisioning == "" {
			newest = data
		}
	}

	return newest, nil
}

// removed reports whether the operation has left no runtime of those before it.
func removed(operation process.Record) bool {
	return operation.State == process.Succeeded &&
		(operation.Kind == environment.KindSuspend || operation.Kind == environment.KindDeprovision)
}

func (r rows) dataOf(ctx context.Context, operationID string) (environment.Data, error) {
	var data environment.Data

	payload, err := r.operations.Payload(ctx, r.db.Reader(), operationID)
	if err != nil {
		return data, explain(err, "the data of the provisioning")
	}

	if err := json.Unmarshal(payload, &data); err != nil {
		return data, failure.Wrap(failure.Internal, err, "the data of the provisioning cannot be read")
	}

	return data, nil
}
