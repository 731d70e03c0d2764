package orders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Caller identifies the client of a request.
type Caller struct {
	// Tenant is the label for the account's ID (see package tenancy). It is never empty.
	Tenant string
	// SubAccount is the label for the subaccount's ID. It may be empty.
	SubAccount string
	// OriginalTenant and OriginalSubAccount are the IDs that the client sent, if they are not valid labels. Otherwise they are
	// empty.
	OriginalTenant, OriginalSubAccount string
	// IdempotencyKey makes a mutation safe to repeat. It may be empty and has at most 255 characters.
	IdempotencyKey string
}

// Kubeconfigs creates kubeconfigs for clusters.
type Kubeconfigs interface {
	// AdminKubeconfig returns a new kubeconfig with cluster-admin rights. It expires after the given time.
	AdminKubeconfig(ctx context.Context, shootName string, valid time.Duration) ([]byte, error)
}

// Registrar registers runtimes in Director before their orders are accepted. Its errors come from package failure, except for
// errors of the database. The calls follow this sequence: Register or Has, then Accept in the transaction, then Forget after the
// transaction.
type Registrar interface {
	// Register registers the runtime of an order, or returns the registration of an earlier attempt with the same key. Before it
	// calls Director, it stores a row, from which the caretaker can clean up after a crash.
	Register(ctx context.Context, order registration.Order) (registration.Registered, error)
	// Has reports whether Director has the runtime with the given ID.
	Has(ctx context.Context, order registration.Order, runtimeID string) (bool, error)
	// Accept records that the order was accepted with the given runtime and operation IDs.
	Accept(ctx context.Context, tx storage.Tx, order registration.Order, runtimeID, operationID string) error
	// Forget unregisters the runtime unless its order was accepted. It does not return an error, because the caretaker repeats a
	// failed call.
	Forget(ctx context.Context, registered registration.Registered)
}

// Agents reads the connection status of runtime agents. It does not return errors: problems are part of the status.
type Agents interface {
	Status(ctx context.Context, runtime runtimes.Runtime) agent.Status
}

// Consoles finds the consoles of runtimes.
type Consoles interface {
	// Console returns the address of the runtime's console, or an empty string.
	Console(ctx context.Context, tenant, runtimeID string) (string, error)
}

// Options are the dependencies of the service. All are required unless the comment allows nil.
type Options struct {
	// DB contains the tables of Operations, Runtimes and the audit log, for transactions that change several of them.
	DB          *storage.DB
	Operations  *operations.Store
	Runtimes    *runtimes.Store
	Kubeconfigs Kubeconfigs
	// Shoots reads the clusters in Gardener.
	Shoots shoot.Reader
	// Adopter takes over Shoots that other programs have created. Build returns the Shoot of a runtime for a preview, with a
	// placeholder instead of its sealed record.
	Adopter Adopter
	Build   func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error)
	// OfRuntime returns the name of the Shoot that belongs to a runtime, or "". It also finds Shoots of runtimes that are not in
	// the database.
	OfRuntime func(ctx context.Context, runtimeID string) (name string, err error)
	// Registrar assigns the IDs of runtimes. If it is nil, Director is disabled, and the service assigns random IDs.
	Registrar Registrar
	// Agents reads the status of runtime agents. It is nil if Director is disabled, because agents cannot connect without Director.
	Agents Agents
	// Consoles is nil if Director is disabled. Runtimes then have no console.
	Consoles Consoles
	// Recorder records issued kubeconfigs and adoptions in the audit log.
	Recorder Recorder
	Clock    clock.Clock
	// Releases plans installations of Kyma, so that the service can reject orders that no release can satisfy.
	Releases installation.Releases
	// Validate returns failure.Invalid for an order that must not be accepted. If it is nil, all orders are valid.
	Validate func(order spec.Runtime) error
	// Defaults complete new orders before they are validated. Nil leaves orders as they are.
	Defaults *Defaults
	// Check fails if no Shoot can be built for the runtime. It does not call other systems.
	Check func(runtime runtimes.Runtime) error
	// Wake makes the engines look for due operations. The service calls it after it has committed a new operation.
	Wake func()
	// KubeconfigValidity is the lifetime of admin kubeconfigs. Gardener requires at least ten minutes.
	KubeconfigValidity time.Duration
}

// Service accepts operations and reports their status. Its errors come from package failure, except storage.ErrChangedColumn. It is
// stateless, so its methods can be called from any goroutine and on any replica.
type Service struct {
	Options
}

// New returns a service. It does not check the options.
func New(options Options) *Service {
	return &Service{Options: options}
}

// accept stores an operation with the given data, together with its audit entry, in the caller's transaction. The operation is
// for the runtime in the data. The returned status is pending; it is valid only after the commit.
func (s *Service) accept(ctx context.Context, tx storage.Tx, id, kind string, data operation.Data) (operation.Status, error) {
	payload, err := json.Marshal(data)
	if err != nil {
		return operation.Status{}, fmt.Errorf("encoding the data of operation %s: %w", id, err)
	}

	accepted, err := s.audited(ctx, tx, process.New{
		ID: id, Kind: kind, InstanceID: data.Runtime.ID, Tenant: data.Runtime.Tenant, Payload: payload, At: s.Clock.Now(),
	}, data.Runtime)
	if err != nil {
		return operation.Status{}, err
	}

	return operation.StatusOf(process.Record{ID: id, Kind: kind, InstanceID: data.Runtime.ID, State: process.Pending}),
		s.Operations.Accept(ctx, tx, accepted)
}

// transact calls the given accept function in a transaction and wakes the engines after the commit. The function must not call
// other systems: it holds locks that other requests wait for, and a rollback undoes only changes to the database.
func (s *Service) transact(ctx context.Context, accept func(tx storage.Tx) (operation.Status, error)) (operation.Status, error) {
	var status operation.Status

	err := s.DB.InTx(ctx, func(tx storage.Tx) (err error) {
		status, err = accept(tx)

		return err
	})
	if err != nil {
		return operation.Status{}, unavailable(err)
	}

	s.Wake()

	return status, nil
}

// kindFor returns the kind of operation that creates or removes the runtime: the first of the two given kinds if the runtime was
// ordered with Kyma, and the second otherwise.
func kindFor(runtime runtimes.Runtime, with, without string) (string, error) {
	order, err := operation.OrderOf(runtime)
	if err == nil && order.KymaConfig != nil {
		return with, nil
	}

	return without, err
}

// owned returns a runtime of the tenant, deleted or not. For another tenant's runtime it returns the same error as for an unknown
// runtime, so that a tenant cannot find out which IDs exist.
func (s *Service) owned(ctx context.Context, tx storage.Tx, tenant, id string) (runtimes.Runtime, error) {
	runtime, err := s.Runtimes.Get(ctx, tx, id)
	if errors.Is(err, storage.ErrNotFound) || (err == nil && runtime.Tenant != tenant) {
		return runtimes.Runtime{}, unknown("runtime", id)
	}

	return runtime, unavailable(err)
}

// awake rejects a runtime whose cluster is hibernated or about to be, because its API server does not respond. The check needs no
// lock: only another operation could change the result, and Service.change rejects concurrent operations.
func (s *Service) awake(ctx context.Context, runtime runtimes.Runtime) error {
	existing, err := s.Shoots.Get(ctx, runtime.ShootName)

	switch {
	case failure.Is(err, failure.NotFound):
		return nil // change rejects a runtime without a cluster and says why
	case err != nil:
		return err
	case shoot.Asleep(existing):
		return failure.New(failure.Conflict, "the runtime %s is hibernated: wake it up first", runtime.ID).
			WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
	default:
		return nil
	}
}

// unknown returns the error for an object that does not exist or belongs to another tenant.
func unknown(what, id string) error {
	return failure.New(failure.NotFound, "this tenant has no %s %q", what, id).
		WithReason(failure.ReasonNotFound, failure.ComponentProvisionerStorage)
}

// unavailable turns a database error into a transient error for clients. It returns nil, any failure.Error and storage.ErrChangedColumn
// unchanged. Clients see ErrChangedColumn as an internal error, because a repeated request does not help.
func unavailable(err error) error {
	if err == nil {
		return nil
	}

	if _, explained := errors.AsType[*failure.Error](err); explained || errors.Is(err, storage.ErrChangedColumn) {
		return err
	}

	return failure.Wrap(failure.Transient, err, "the database of the Provisioner does not respond: try again").
		WithReason(failure.ReasonInternal, failure.ComponentProvisionerStorage)
}
