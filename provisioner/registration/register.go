package registration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// LabelOrder is the key of the Director label that all registrations of an order share. Its value is a hash of the order's
// identity.
const LabelOrder = "environment_broker_order"

// forgetTimeout is the maximum duration of Forget. The client gets the rejection of its order only after Forget has returned.
const forgetTimeout = 10 * time.Second

// Director is the part of director.Client that this package needs. The methods of director.Client document the calls.
type Director interface {
	Register(ctx context.Context, tenant string, runtime director.Runtime) (string, error)
	Find(ctx context.Context, tenant, label, value string) ([]director.Runtime, error)
	Update(ctx context.Context, tenant, id string, change director.Change) error
	Unregister(ctx context.Context, tenant, id string) error
}

// Registrar registers the runtimes of new orders. It is safe for concurrent use, including concurrent attempts at the same order.
// All fields are required.
type Registrar struct {
	Director Director
	Rows     *runtimes.Store
	// Project is the name of the Gardener project. The value of LabelOrder is derived from it, so Provisioners of different
	// projects can share a Director.
	Project string
	Clock   clock.Clock
	Log     logrus.FieldLogger
}

// Order contains the fields of a runtime's order that its registration in Director needs.
type Order struct {
	Tenant string
	// Key is the client's idempotency key. Without a key, ShootName identifies the order.
	Key       string
	ShootName string

	// Name, Description and Labels are shown in Director. Register adds LabelOrder to a copy of Labels, which may be nil.
	Name, Description string
	Labels            map[string]any
}

// Registered is a runtime that Director has registered for an order.
type Registered struct {
	Tenant, Label string
	RuntimeID     string
	// made reports whether this attempt registered the runtime. If it is false, Forget must not unregister the runtime, because
	// another attempt may use it.
	made bool
}

// Register registers the runtime of an order, or returns the registration of an earlier attempt. Before it calls Director, it
// stores a row, from which the Caretaker can clean up after a crash. It fails with failure.Transient while the Caretaker is
// removing registrations of the same order.
func (r *Registrar) Register(ctx context.Context, order Order) (Registered, error) {
	registered := Registered{Tenant: order.Tenant, Label: r.label(order)}

	free, err := r.Rows.IntendRegistration(ctx, order.Tenant, registered.Label, r.Clock.Now())
	if err != nil {
		return Registered{}, err
	}

	if !free {
		return Registered{}, failure.New(failure.Transient,
			"registrations of an earlier attempt are being removed from Director: try again in a minute").
			WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
	}

	registered.RuntimeID, err = r.earlier(ctx, registered)
	if err != nil || registered.RuntimeID != "" {
		return registered, err
	}

	labels := map[string]any{}
	maps.Copy(labels, order.Labels)
	labels[LabelOrder] = registered.Label

	registered.made = true
	registered.RuntimeID, err = r.Director.Register(ctx, order.Tenant, director.Runtime{
		Name: order.Name, Description: order.Description, Labels: labels,
	})

	return registered, err
}

// Has reports whether Director has a runtime with the given ID and the service instance ID of the order. It returns false if
// Director does not know the tenant.
func (r *Registrar) Has(ctx context.Context, order Order, runtimeID string) (bool, error) {
	instanceID, _ := order.Labels[spec.LabelInstance].(string)

	found, err := r.Director.Find(ctx, order.Tenant, spec.LabelInstance, instanceID)
	if errors.Is(err, director.ErrTenantUnknown) {
		return false, nil
	}

	return slices.ContainsFunc(found, func(each director.Runtime) bool { return each.ID == runtimeID }), err
}

// earlier returns the ID of the runtime that an earlier attempt at the order registered, or "" if there is none. If concurrent
// attempts have registered several runtimes, all later attempts use the lowest ID, and the Caretaker removes the runtimes without
// an accepted order. earlier skips runtimes that Director still lists but that the database records as deleted.
func (r *Registrar) earlier(ctx context.Context, registered Registered) (string, error) {
	found, err := r.Director.Find(ctx, registered.Tenant, LabelOrder, registered.Label)
	if err != nil {
		return "", err
	}

	ids := make([]string, 0, len(found))
	for _, runtime := range found {
		ids = append(ids, runtime.ID)
	}

	deleted, err := r.Rows.DeletedAmong(ctx, ids)
	if err != nil {
		return "", err
	}

	slices.Sort(ids)

	for _, id := range ids {
		if !slices.Contains(deleted, id) {
			return id, nil
		}
	}

	return "", nil
}

// Accept records, in the given transaction, that the order was accepted with the given runtime and operation IDs. From then on
// the registration belongs to the runtime, and the Caretaker reports to Director if the operation fails.
func (r *Registrar) Accept(ctx context.Context, tx storage.Tx, order Order, runtimeID, operationID string) error {
	return r.Rows.AcceptRegistration(ctx, tx, runtimes.Registration{
		Tenant: order.Tenant, Label: r.label(order), RuntimeID: runtimeID, OperationID: operationID,
	}, r.Clock.Now())
}

// Forget unregisters a runtime whose order was rejected after Register. It does nothing if another attempt registered the
// runtime, or if the order was accepted. It runs even if the client has disconnected. It does not return an error: if the call
// fails, the Caretaker unregisters the runtime later.
func (r *Registrar) Forget(ctx context.Context, registered Registered) {
	if !registered.made {
		return
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()

	live, err := alive(ctx, r.Rows, registered.RuntimeID)
	if err == nil && !live {
		err = r.Director.Unregister(ctx, registered.Tenant, registered.RuntimeID)
	}

	if err != nil {
		r.Log.WithError(err).WithField(logging.RuntimeID, registered.RuntimeID).
			Warn("unregistering a runtime without an accepted order failed; trying again later")
	}
}

// label returns the value of LabelOrder, which is the same for every attempt at an order. It is a hash because Director's filters
// reject some characters that idempotency keys may contain.
func (r *Registrar) label(order Order) string {
	kind, value := "name", order.ShootName
	if order.Key != "" {
		kind, value = "key", order.Key
	}

	hash := sha256.Sum256([]byte(r.Project + "\x00" + kind + "\x00" + value))

	return hex.EncodeToString(hash[:16])
}

// alive reports whether the database has the runtime and has not marked it as deleted.
func alive(ctx context.Context, rows *runtimes.Store, runtimeID string) (bool, error) {
	runtime, err := rows.Get(ctx, rows.Reader(), runtimeID)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}

	return err == nil && runtime.DeletedAt.IsZero(), err
}
