package orders

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
)

// HeaderIdempotencyKey is the API header that carries Caller.IdempotencyKey.
const HeaderIdempotencyKey = "Idempotency-Key"

// request identifies the request of a caller, to compare it with an earlier request that has the same key. It contains only the
// fields that identify an order. A client that was upgraded between the two requests may repeat the order with other values in
// the remaining fields: see docs/adr/0034-idempotency-keys-identify-an-order.md.
type request struct {
	// runtimeID is the ID of the existing runtime, or empty in a request for a new runtime.
	runtimeID string
	// shootName and instanceID are the cluster name and the service instance ID in the order for a new runtime. instanceID may be
	// empty.
	shootName, instanceID string
	// fulfilledBy reports whether an operation of the given kind carries out the request.
	fulfilledBy func(kind string) bool
}

// requestFor returns the request for an operation of the given kind on an existing runtime. An upgrade of Kyma alone and an
// upgrade of Kyma and Kubernetes count as the same request, because both come from the same mutation.
func requestFor(runtimeID, kind string) request {
	return request{runtimeID: runtimeID, fulfilledBy: func(other string) bool {
		return other == kind || operation.UpgradesKyma(other) && operation.UpgradesKyma(kind)
	}}
}

// once returns the operation of an earlier request with the caller's key, or calls accept for a new request. Requests that call
// other systems use once, so that repeated requests do not repeat the calls. Requests that use only the database rely on
// remember.
//
// The key is read outside the transaction, so a concurrent request may store it between the read and accept. In that case
// remember, which accept calls in the transaction, returns the operation of that request.
func (s *Service) once(ctx context.Context, caller Caller, request request, accept func() (operation.Status, error),
) (operation.Status, error) {
	if caller.IdempotencyKey == "" {
		return accept()
	}

	operationID, err := s.Runtimes.Recall(ctx, s.Runtimes.Reader(), caller.Tenant, caller.IdempotencyKey)
	if errors.Is(err, storage.ErrNotFound) {
		return accept()
	}

	if err != nil {
		return operation.Status{}, unavailable(err)
	}

	repeated, err := s.earlier(ctx, s.Runtimes.Reader(), operationID, request)
	if err != nil {
		return operation.Status{}, unavailable(err)
	}

	return *repeated, nil
}

// remember stores the caller's key for a new operation and returns nil. If an earlier request has used the key, it returns the
// operation of that request instead, and the caller must not accept a new operation. Of two concurrent requests with the same
// key, the second waits for the first to commit or roll back. Without a key, remember stores nothing.
func (s *Service) remember(ctx context.Context, tx storage.Tx, caller Caller, request request, operationID string,
) (*operation.Status, error) {
	kept, err := s.Runtimes.Remember(ctx, tx, caller.Tenant, caller.IdempotencyKey, operationID, s.Clock.Now())
	if err != nil || kept == operationID {
		return nil, err
	}

	return s.earlier(ctx, tx, kept, request)
}

// creation returns the request for a new runtime.
func creation(order spec.Runtime) request {
	wanted := request{fulfilledBy: operation.Provisions, instanceID: order.InstanceID()}

	if cluster := order.ClusterConfig; cluster != nil && cluster.GardenerConfig != nil {
		wanted.shootName = cluster.GardenerConfig.Name
	}

	return wanted
}

// isAbout reports whether the given operation, which an earlier request has created, also carries out the given request.
func (s *Service) isAbout(ctx context.Context, tx storage.Tx, record process.Record, request request) (bool, error) {
	if !request.fulfilledBy(record.Kind) {
		return false, nil
	}

	if request.runtimeID != "" {
		return request.runtimeID == record.InstanceID, nil
	}

	runtime, err := s.Runtimes.Get(ctx, tx, record.InstanceID)
	if err != nil || runtime.ShootName != request.shootName {
		return false, err
	}

	order, err := operation.OrderOf(runtime)
	if err != nil {
		return false, err
	}

	former := order.InstanceID()

	return former == "" || request.instanceID == "" || former == request.instanceID, nil
}

// earlier returns the operation of an earlier request with the same key. It rejects a key that was used for a different request.
// Otherwise the caller would assume that the operation carries out its new request.
func (s *Service) earlier(ctx context.Context, tx storage.Tx, operationID string, request request) (*operation.Status, error) {
	record, err := s.Operations.Get(ctx, tx, operationID)
	if err != nil {
		return nil, err
	}

	repeats, err := s.isAbout(ctx, tx, record, request)
	if err != nil {
		return nil, err
	}

	if !repeats {
		return nil, failure.New(failure.Invalid, "the %s header repeats the key of a different request, which created operation %s (%s): "+
			"each request needs its own key", HeaderIdempotencyKey, record.ID, operation.PublicKind(record.Kind))
	}

	status := operation.StatusOf(record)

	return &status, nil
}
