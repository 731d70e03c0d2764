package orders

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
)

// HeaderIdempotencyKey is the header of the API that carries Caller.IdempotencyKey.
const HeaderIdempotencyKey = "Idempotency-Key"

// request identifies the request of a caller, to compare it with an earlier request that has the same key. The comparison does
// not include the order.
type request struct {
	// runtimeID is empty for a new runtime.
	runtimeID string
	// fulfilledBy reports whether an operation of the kind carries out the request.
	fulfilledBy func(kind string) bool
}

// requestFor returns the request for an operation of the kind on an existing runtime.
func requestFor(runtimeID, kind string) request {
	return request{runtimeID: runtimeID, fulfilledBy: func(other string) bool { return other == kind }}
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

// earlier returns the operation of an earlier request with the same key. It rejects a key that was used for a different request.
// Otherwise the caller would assume that the operation carries out its new request.
func (s *Service) earlier(ctx context.Context, tx storage.Tx, operationID string, request request) (*operation.Status, error) {
	record, err := s.Operations.Get(ctx, tx, operationID)
	if err != nil {
		return nil, err
	}

	if !request.fulfilledBy(record.Kind) || (request.runtimeID != "" && request.runtimeID != record.InstanceID) {
		return nil, failure.New(failure.Invalid, "the header %s was already used by a different request, which created operation %s (%s): "+
			"each request needs its own key", HeaderIdempotencyKey, record.ID, operation.PublicKind(record.Kind))
	}

	status := operation.StatusOf(record)

	return &status, nil
}
