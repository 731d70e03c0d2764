package runtimes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Kubeconfigs makes kubeconfigs of clusters.
type Kubeconfigs interface {
	AdminKubeconfig(ctx context.Context, shootName string, valid time.Duration) ([]byte, error)
}

// Shoots tells what Gardener says of clusters. Its errors are of package failure.
type Shoots interface {
	Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error)
}

// Registrar registers runtimes in Director before they are accepted. Its errors are of package failure but for those of the database.
type Registrar interface {
	// Register registers the runtime of an order, or finds what an earlier try has registered.
	Register(ctx context.Context, order registration.Order) (registration.Registered, error)
	// Accept records that the order was accepted as the runtime and operation.
	Accept(ctx context.Context, tx storage.Tx, order registration.Order, runtimeID, operationID string) error
	// Forget unregisters what was registered in vain.
	Forget(ctx context.Context, registered registration.Registered)
}

// Agents tells how the agents of runtimes are connected. It always answers: what it cannot find out stands among the errors.
type Agents interface {
	Status(ctx context.Context, runtime runtimes.Runtime) *model.RuntimeConnectionStatus
}

// Options are what the service needs.
type Options struct {
	DB          *storage.DB
	Operations  *operations.Store
	Runtimes    *runtimes.Store
	Kubeconfigs Kubeconfigs
	Shoots      Shoots
	// Registrar gives runtimes their ids. Without one they get ids of their own.
	Registrar Registrar
	// Agents is nil without Director: then no runtime has an agent that is connected.
	Agents Agents
	// Trail is where reads of kubeconfigs are written down.
	Trail Trail
	Clock clock.Clock
	// Releases says what an order of Kyma makes of a cluster.
	Releases installation.Releases
	// Check says whether a cluster can be made of the runtime's configuration.
	Check func(runtime runtimes.Runtime) error
	// Wake tells the engines that an operation is due. It is called after the commit.
	Wake func()
	// KubeconfigValidity is how long an admin kubeconfig works.
	KubeconfigValidity time.Duration
}

// Service implements graph.Runtimes.
type Service struct {
	Options
}

var _ graph.Runtimes = (*Service)(nil)

// New returns the service.
func New(options Options) *Service {
	return &Service{Options: options}
}

// accept adds an operation on the runtime of the data inside the transaction.
func (s *Service) accept(ctx context.Context, tx storage.Tx, id, kind string, data operation.Data) error {
	payload, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encoding the data of operation %s: %w", id, err)
	}

	accepted, err := s.ordered(ctx, tx, process.New{
		ID: id, Kind: kind, InstanceID: data.Runtime.ID, Tenant: data.Runtime.Tenant, Payload: payload, At: s.Clock.Now(),
	}, data.Runtime)
	if err != nil {
		return err
	}

	return s.Operations.Accept(ctx, tx, accepted)
}

// kindFor chooses the kind of an operation by whether the runtime was ordered with Kyma.
func kindFor(runtime runtimes.Runtime, with, without string) (string, error) {
	order, err := operation.OrderOf(runtime)
	if err == nil && order.KymaConfig != nil {
		return with, nil
	}

	return without, err
}

// owned returns the tenant's runtime. One of another tenant does not exist for the caller.
func (s *Service) owned(ctx context.Context, tx storage.Tx, tenant, id string) (runtimes.Runtime, error) {
	runtime, err := s.Runtimes.Get(ctx, tx, id)
	if errors.Is(err, storage.ErrNotFound) || (err == nil && runtime.Tenant != tenant) {
		return runtimes.Runtime{}, unknown("runtime", id)
	}

	return runtime, unavailable(err)
}

// awake refuses a runtime whose cluster is hibernated. Only an operation could put the cluster to sleep from now on, and that would be in
// the way of the next one.
func (s *Service) awake(ctx context.Context, runtime runtimes.Runtime) error {
	existing, err := s.Shoots.Get(ctx, runtime.ShootName)

	switch {
	case failure.Is(err, failure.NotFound):
		return nil // the runtime's operations say why there is none
	case err != nil:
		return err
	case shoot.Asleep(existing):
		return failure.New(failure.Conflict, "the runtime %s is hibernated: wake it up first", runtime.ID).
			WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
	default:
		return nil
	}
}

func unknown(what, id string) error {
	return failure.New(failure.NotFound, "there is no %s %q of this tenant", what, id).
		WithReason(failure.ReasonNotFound, failure.ComponentProvisionerStorage)
}

// unavailable explains an error of the database. An error that is explained already stays as it is; nil stays nil.
func unavailable(err error) error {
	if err == nil {
		return nil
	}

	if _, explained := errors.AsType[*failure.Error](err); explained {
		return err
	}

	return failure.Wrap(failure.Transient, err, "the database of the Provisioner does not answer as it should: try again").
		WithReason(failure.ReasonInternal, failure.ComponentProvisionerStorage)
}
