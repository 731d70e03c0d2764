package broker

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// tries is how often a request is looked at anew when another one for the same instance was faster.
const tries = 3

// errOvertaken tells that another request was faster.
var errOvertaken = errors.New("another request for the instance was faster")

// unlessOvertaken tries. A request that another one has overtaken begins anew, and sees then what the other one did.
func unlessOvertaken(try func() error) error {
	for range tries {
		err := try()
		if !errors.Is(err, errOvertaken) && !storage.IsDuplicate(err) {
			return err
		}
	}

	return concurrent()
}

// inTx runs work in one transaction, unless another request overtakes it.
func (a *api) inTx(ctx context.Context, work func(tx storage.Tx) error) error {
	return unlessOvertaken(func() error { return a.DB.InTx(ctx, work) })
}

// lifeKinds are the kinds of operations that begin and end an instance.
func lifeKinds() []string { return []string{environment.KindProvision, environment.KindDeprovision} }

// latest returns the newest operation of the kinds, and false when there is none.
func (a *api) latest(ctx context.Context, tx storage.Tx, instanceID string, kinds ...string) (process.Record, bool, error) {
	record, err := a.Operations.Latest(ctx, tx, instanceID, kinds...)
	if errors.Is(err, storage.ErrNotFound) {
		return process.Record{}, false, nil
	}

	return record, err == nil, err
}

// beingDeleted reports whether the newest operation is a deletion that has not ended. The instance's row may be gone already.
func beingDeleted(newest process.Record) bool {
	return newest.Kind == environment.KindDeprovision && !newest.State.Terminal()
}

// goesOn reports whether an operation has not ended and nobody has canceled it: who wants what it does need not begin another one.
func goesOn(operation process.Record) bool {
	return !operation.State.Terminal() && operation.State != process.Canceling
}
