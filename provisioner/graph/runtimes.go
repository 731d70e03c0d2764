package graph

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

// Runtimes does what the server is asked for. It returns errors of package failure; any other error is taken for a fault of
// ours and stays out of the answer. Input that it gets is already validated.
type Runtimes interface {
	// Known returns the operation that the caller's idempotency key stands for, and false when the key is empty or new.
	Known(ctx context.Context, caller Caller) (model.OperationStatus, bool, error)
	// Provision accepts the order of a new runtime and returns at once, with the ids of the runtime and of its operation.
	Provision(ctx context.Context, caller Caller, input model.ProvisionRuntimeInput) (model.OperationStatus, error)
	Changer
	// Deprovision accepts the removal of a runtime, cancels what else runs for it, and returns the id of the operation that
	// removes it: the present one when there is one already.
	Deprovision(ctx context.Context, caller Caller, runtimeID string) (operationID string, err error)
	// RuntimeStatus describes a runtime; what the caller does not want may be left nil, above all what is costly to get. When a
	// part cannot be had, it returns the error and the rest: a status with a LastOperationStatus is answered beside the error.
	RuntimeStatus(ctx context.Context, caller Caller, runtimeID string, want RuntimeFields) (model.RuntimeStatus, error)
	// OperationStatus tells how far an operation is.
	OperationStatus(ctx context.Context, caller Caller, operationID string) (model.OperationStatus, error)
	// Changes returns the operations of all tenants that changed after the cursor, and the cursor that stands for them. It
	// waits for the first one as long as it may and then returns none, with a cursor that is as good. Without a cursor it
	// returns the present one at once. A cursor that it does not know is failure.Invalid. It ends early with ctx.
	Changes(ctx context.Context, after string, wait time.Duration) (cursor string, changes []model.OperationChange, err error)
}

// Changer is the part of Runtimes that changes runtimes which are there.
type Changer interface {
	// UpgradeShoot accepts the change of a runtime's cluster. While another operation is at work on the runtime, or when it has no
	// cluster, that is failure.Conflict.
	UpgradeShoot(ctx context.Context, caller Caller, runtimeID string, upgrade model.UpgradeShootInput) (model.OperationStatus, error)
	// UpgradeRuntime accepts another version, or another configuration, of a runtime's Kyma; RollBackUpgrade accepts that what the last
	// upgrade found installed is put back. They refuse as UpgradeShoot does, and a runtime that has no Kyma or is hibernated. What
	// cannot be installed is failure.Invalid.
	UpgradeRuntime(ctx context.Context, caller Caller, runtimeID string, upgrade model.UpgradeRuntimeInput) (model.OperationStatus, error)
	RollBackUpgrade(ctx context.Context, caller Caller, runtimeID string) (model.OperationStatus, error)
	// Hibernate has a runtime's cluster put to sleep, WakeUp has it brought back. They refuse as UpgradeShoot does; Hibernate also when
	// Gardener could not wake the cluster again.
	Hibernate(ctx context.Context, caller Caller, runtimeID string) (model.OperationStatus, error)
	WakeUp(ctx context.Context, caller Caller, runtimeID string) (model.OperationStatus, error)
	// ReconnectAgent has the agent in a runtime connect anew, and returns the id of the operation that does so. It refuses as
	// UpgradeShoot does, and when the cluster sleeps, the runtime has no agent, or agents cannot connect at all.
	ReconnectAgent(ctx context.Context, caller Caller, runtimeID string) (operationID string, err error)
}

// Caller is on whose behalf a request comes, as its headers say.
type Caller struct {
	// Tenant is the account: header tenant. It is never empty and fits into a Kubernetes label.
	Tenant string
	// SubAccount may be empty: header sub-account. It fits into a Kubernetes label.
	SubAccount string
	// IdempotencyKey makes a mutation safe to repeat: header Idempotency-Key. It may be empty and has at most 255 characters.
	IdempotencyKey string
}

// RuntimeFields are the parts of a runtime's status that cost a call to another system, true when the query selects them.
type RuntimeFields struct {
	ClusterConfig    bool
	Kubeconfig       bool
	ConnectionStatus bool
	Hibernation      bool
}
