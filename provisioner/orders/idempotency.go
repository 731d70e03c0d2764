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

// request identifies what a caller asks for.
type request struct {
	// runtimeID is empty for a new runtime.
	runtimeID string
	// does reports whether operations of the kind fulfil the request.
	does func(kind string) bool
}

// requestFor returns the request for an operation of the kind.
func requestFor(runtimeID, kind string) request {
	return request{runtimeID: runtimeID, does: func(other string) bool { return other == kind }}
}

// once returns the operation that an earlier request with the caller's key got, or calls accept for a new request. Requests that
// call other systems use it, so that a repeated request calls none. Those that only need the transaction leave it to remember.
func (s *Service) once(ctx context.Context, caller Caller, request request, accept func() (operation.Status, error),
) (operation.Status, error) {
	known, err := s.repeated(ctx, caller, request)
	if err != nil {
		return operation.Status{}, err
	}

	if known != nil {
		return *known, nil
	}

	return accept()
}

// repeated returns the operation of an earlier request with the caller's key, or nil. It reads outside the transaction, so a
// concurrent request may still store the key: remember decides.
func (s *Service) repeated(ctx context.Context, caller Caller, request request) (*operation.Status, error) {
	if caller.IdempotencyKey == "" {
		return nil, nil
	}

	operationID, err := s.Runtimes.Recall(ctx, s.Runtimes.Reader(), caller.Tenant, caller.IdempotencyKey)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, unavailable(err)
	}

	status, err := s.earlier(ctx, s.Runtimes.Reader(), operationID, request)

	return status, unavailable(err)
}

// remember stores the caller's key for a new operation. If the key was used before, it returns the operation of that request
// instead.
func (s *Service) remember(ctx context.Context, tx storage.Tx, caller Caller, request request, operationID string,
) (*operation.Status, error) {
	kept, err := s.Runtimes.Remember(ctx, tx, caller.Tenant, caller.IdempotencyKey, operationID, s.Clock.Now())
	if err != nil || kept == operationID {
		return nil, err
	}

	return s.earlier(ctx, tx, kept, request)
}

// earlier returns the operation of an earlier request with the same key. It refuses a key that was used for a different request:
// otherwise this request would never be carried out, and the caller would not notice.
func (s *Service) earlier(ctx context.Context, tx storage.Tx, operationID string, request request) (*operation.Status, error) {
	record, err := s.Operations.Get(ctx, tx, operationID)
	if err != nil {
		return nil, err
	}

	if !request.does(record.Kind) || (request.runtimeID != "" && request.runtimeID != record.InstanceID) {
		return nil, failure.New(failure.Invalid, "the header %s was sent with another request, which created operation %s (%s): "+
			"each request needs its own key", HeaderIdempotencyKey, record.ID, operation.PublicKind(record.Kind))
	}

	status := operation.StatusOf(record)

	return &status, nil
}
