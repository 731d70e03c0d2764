package graph

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Service is the Provisioner behind the API: orders.Service, or a simulation in tests and benchmarks. Its errors come from
// package failure. The API treats any other error as internal and hides its text. All methods are safe for concurrent use.
type Service interface {
	Mutations
	Queries
}

// Mutations accepts operations on runtimes. A returned operation is stored, and runs even if the client disconnects.
type Mutations interface {
	Provision(ctx context.Context, caller orders.Caller, order spec.Runtime) (operation.Status, error)
	UpgradeShoot(ctx context.Context, caller orders.Caller, runtimeID string, upgrade spec.Upgrade) (operation.Status, error)
	UpgradeRuntime(ctx context.Context, caller orders.Caller, runtimeID string, upgrade spec.KymaUpgrade) (operation.Status, error)
	RollBackUpgrade(ctx context.Context, caller orders.Caller, runtimeID string, clientData *string) (operation.Status, error)
	Hibernate(ctx context.Context, caller orders.Caller, runtimeID string) (operation.Status, error)
	WakeUp(ctx context.Context, caller orders.Caller, runtimeID string) (operation.Status, error)
	ReconnectAgent(ctx context.Context, caller orders.Caller, runtimeID string) (operationID string, err error)
	Deprovision(ctx context.Context, caller orders.Caller, runtimeID string) (operationID string, err error)
	AdoptShoot(ctx context.Context, caller orders.Caller, adoption orders.Adoption) (orders.Adopted, error)
}

// Queries returns the status of runtimes and operations. RuntimeStatus may return both a status and an error; if the status has
// an Operation, the client gets both.
type Queries interface {
	RuntimeStatus(ctx context.Context, caller orders.Caller, runtimeID string, want orders.RuntimeFields,
	) (orders.RuntimeStatus, error)
	OperationStatus(ctx context.Context, caller orders.Caller, operationID string) (operation.Status, error)
	// OperationErrors returns the errors of an operation's attempts, without checking who owns the operation.
	OperationErrors(ctx context.Context, operationID string) ([]string, error)
	ListRuntimes(ctx context.Context, filter orders.RuntimeFilter, page orders.Page) (orders.RuntimeList, error)
	ListOperations(ctx context.Context, filter orders.OperationFilter, page orders.Page) (orders.OperationList, error)
	Changes(ctx context.Context, after string, wait time.Duration) (cursor string, changes []orders.Change, err error)
}

var _ Service = (*orders.Service)(nil)
