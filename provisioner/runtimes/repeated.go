package runtimes

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
)

// request is what a caller asks for.
type request struct {
	// runtimeID is empty for a runtime that is yet to be made.
	runtimeID string
	// does reports whether operations of the kind do it.
	does func(kind string) bool
}

// requestFor asks for an operation of the kind.
func requestFor(runtimeID, kind string) request {
	return request{runtimeID: runtimeID, does: func(other string) bool { return other == kind }}
}

// Known implements graph.Runtimes.
func (s *Service) Known(ctx context.Context, caller graph.Caller) (model.OperationStatus, bool, error) {
	return s.repeated(ctx, caller, request{does: operation.Provisions})
}

// repeated returns the operation that the caller's key stands for, and false when the key is empty or new.
func (s *Service) repeated(ctx context.Context, caller graph.Caller, request request) (model.OperationStatus, bool, error) {
	if caller.IdempotencyKey == "" {
		return model.OperationStatus{}, false, nil
	}

	operationID, err := s.Runtimes.Recall(ctx, s.Runtimes.Reader(), caller.Tenant, caller.IdempotencyKey)
	if errors.Is(err, storage.ErrNotFound) {
		return model.OperationStatus{}, false, nil
	}

	if err == nil {
		err = s.answers(ctx, s.Runtimes.Reader(), operationID, request)
	}

	if err != nil {
		return model.OperationStatus{}, false, unavailable(err)
	}

	known, err := s.OperationStatus(ctx, caller, operationID)

	return known, err == nil, err
}

// answers refuses a key that was sent with another request: answered with the operation of that one, this one would never be done and
// its caller would not know.
func (s *Service) answers(ctx context.Context, tx storage.Tx, operationID string, request request) error {
	record, err := s.Operations.Get(ctx, tx, operationID)
	if err != nil {
		return err
	}

	if request.does(record.Kind) && (request.runtimeID == "" || request.runtimeID == record.InstanceID) {
		return nil
	}

	return failure.New(failure.Invalid, "the header %s was sent with another request, which made operation %s (%s): "+
		"each request needs a key of its own", graph.HeaderIdempotencyKey, record.ID, typeOf(record.Kind))
}
