package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// reasonRestored is the reason that timelines and the audit log show for a restored row.
const reasonRestored = "restored from the record in the Shoot"

// textOf returns the text of an error for operators.
func textOf(err error) string { return failure.Of(err).ForOperators() }

// lost is a runtime whose row was lost, with its order.
type lost struct {
	runtime    runtimes.Runtime
	order      spec.Runtime
	instanceID string
	asleep     bool
}

// restorable returns the row that the record of the Shoot contains. If the row cannot be restored, the error, which comes from package
// failure, gives the reason.
func (c *Comparer) restorable(ctx context.Context, shoot gardener.Owned) (lost, error) {
	if shoot.Record == "" {
		return lost{}, failure.New(failure.NotFound, "the Shoot has no record of its runtime: an earlier release or another program has created it")
	}

	runtime, err := c.Runtimes.OpenRecord(shoot.RuntimeID, shoot.Record)
	if err != nil {
		return lost{}, failure.Wrap(failure.Permanent, err,
			"the record in the Shoot cannot be read: if its encryption key was removed from APP_DATABASE_SECRET_KEYS, add the key at the end; otherwise, "+
				"somebody has changed the record")
	}

	found := lost{runtime: runtime, asleep: shoot.Asleep}

	if found.order, err = operation.OrderOf(runtime); err != nil {
		return found, err
	}

	found.instanceID = found.order.InstanceID()
	cluster := found.order.ClusterConfig.GardenerConfig
	found.runtime.Provider, found.runtime.Region = cluster.Provider, cluster.Region

	other, err := c.Runtimes.OfShoot(ctx, c.DB.Reader(), shoot.Name)

	switch {
	case runtime.ID != shoot.RuntimeID || runtime.ShootName != shoot.Name:
		return found, failure.New(failure.Conflict, "the record in the Shoot belongs to another Shoot, %s", runtime.ShootName)
	case err == nil && other.ID != runtime.ID:
		return found, failure.New(failure.Conflict, "another runtime, %s, has the same Shoot name: first delete that runtime's instance", other.ID)
	case !shoot.Ready:
		return found, failure.New(failure.Waiting, "Gardener has not finished the last change of the Shoot: repeat the command when it has finished")
	default:
		return found, nil
	}
}

// Restore implements operatorserver.Differences. It adds the row of a runtime whose Shoot exists, with a succeeded operation.
func (c *Comparer) Restore(ctx context.Context, difference operatorapi.Difference) error {
	if difference.Kind != operatorapi.DifferenceKindShootWithoutRuntime {
		return failure.New(failure.Invalid, "only Shoots without a runtime can be restored")
	}

	shoot, err := c.Shoots.Get(ctx, difference.ShootName)
	if err != nil {
		return err
	}

	found, err := c.restorable(ctx, gardener.OwnedOf(shoot))
	if err != nil {
		return err
	}

	registered, err := c.isRegistered(ctx, found.runtime)
	if err != nil {
		return err
	}

	return c.DB.InTx(ctx, func(tx storage.Tx) error { return c.insert(ctx, tx, found, registered) })
}

// isRegistered reports whether Director has the runtime. The restored operation stores the result, so that a later deletion of the
// runtime also removes the registration.
func (c *Comparer) isRegistered(ctx context.Context, runtime runtimes.Runtime) (bool, error) {
	if c.Director == nil {
		return false, nil
	}

	_, err := c.Director.Get(ctx, runtime.Account(), runtime.ID)
	if failure.Is(err, failure.NotFound) {
		return false, nil
	}

	return err == nil, err
}

// insert adds the row, its operations and the audit entry. If the row exists, it changes nothing.
func (c *Comparer) insert(ctx context.Context, tx storage.Tx, found lost, registered bool) error {
	runtime := found.runtime

	inserted, err := c.Runtimes.Insert(ctx, tx, runtime)
	if err != nil {
		return err
	}

	if !inserted {
		exists, err := c.Runtimes.Exists(ctx, tx, runtime.ID)
		if err == nil && !exists {
			err = failure.New(failure.Conflict, "another runtime now has the same Shoot name: repeat the command")
		}

		return err
	}

	kind := operation.KindProvisionNoInstall
	if found.order.KymaConfig != nil {
		kind = operation.KindProvision
	}

	data := operation.Data{Runtime: runtime, Registered: registered}
	if err := c.operate(ctx, tx, runtime.ProvisionedBy, kind, data); err != nil {
		return err
	}

	if found.asleep {
		data.Asleep = true

		if err := c.operate(ctx, tx, uuid.NewString(), operation.KindHibernate, data); err != nil {
			return err
		}
	}

	return c.Recorder.Record(ctx, tx, auditlog.Entry{
		Action: auditlog.ActionRestore, InstanceID: runtime.ID, Status: http.StatusOK, Reason: reasonRestored,
		After: auditlog.Fields{"shootName": runtime.ShootName, "tenant": runtime.Account(), "instance": found.instanceID},
	})
}

// operate inserts an operation that has already succeeded.
func (c *Comparer) operate(ctx context.Context, tx storage.Tx, id, kind string, data operation.Data) error {
	payload, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encoding a restored operation: %w", err)
	}

	// Do not use the current time: the broker would still treat an operation that has just ended as unfinished, and would not
	// restore the instance.
	at := data.Runtime.CreatedAt
	if latest := c.Clock.Now().Add(-2 * clockSkew); at.After(latest) {
		at = latest
	}

	return c.Operations.InsertSucceeded(ctx, tx, process.New{
		ID: id, Kind: kind, InstanceID: data.Runtime.ID, Tenant: data.Runtime.Tenant, Payload: payload, Why: reasonRestored, At: at,
	})
}
