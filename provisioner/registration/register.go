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
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// LabelOrder is the label that identifies the order of a runtime.
const LabelOrder = "environment_broker_order"

// forgetTimeout limits the cleanup after a refused order.
const forgetTimeout = 10 * time.Second

// Director is the client of Director. Its errors are of package failure.
type Director interface {
	Register(ctx context.Context, tenant string, runtime director.Runtime) (string, error)
	Find(ctx context.Context, tenant, label, value string) ([]director.Runtime, error)
	Update(ctx context.Context, tenant, id string, change director.Change) error
	Unregister(ctx context.Context, tenant, id string) error
}

// Rows stores registrations and runtimes.
type Rows interface {
	IntendRegistration(ctx context.Context, tenant, label string, now time.Time) (bool, error)
	AcceptRegistration(ctx context.Context, tx storage.Tx, registration runtimes.Registration, now time.Time) error
	UnreportedFailures(ctx context.Context, limit int) ([]runtimes.Registration, error)
	FailureReported(ctx context.Context, registration runtimes.Registration) error
	HoldRegistration(ctx context.Context, before, now, until time.Time) (runtimes.Registration, error)
	SettleRegistration(ctx context.Context, registration runtimes.Registration) error
	DeletedAmong(ctx context.Context, ids []string) ([]string, error)
	Get(ctx context.Context, tx storage.Tx, id string) (runtimes.Runtime, error)
	Reader() storage.Tx
}

// Registrar registers the runtimes of orders.
type Registrar struct {
	Director Director
	Rows     Rows
	// Project is the project in Gardener. It separates the registrations of several Provisioners in one Director.
	Project string
	Clock   clock.Clock
	Log     logrus.FieldLogger
}

// Order is an order for a runtime.
type Order struct {
	Tenant string
	// Key is the idempotency key. If it is empty, orders with the same cluster name are the same.
	Key       string
	ShootName string

	Name, Description string
	Labels            map[string]any
}

// Registered is a registered runtime.
type Registered struct {
	Tenant, Label string
	RuntimeID     string
	// made reports whether this attempt registered it, not an earlier one.
	made bool
}

// Register registers the runtime of an order, or returns the registration of an earlier attempt.
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

	labels := maps.Clone(order.Labels)
	if labels == nil {
		labels = map[string]any{}
	}

	labels[LabelOrder] = registered.Label

	registered.made = true
	registered.RuntimeID, err = r.Director.Register(ctx, order.Tenant, director.Runtime{
		Name: order.Name, Description: order.Description, Labels: labels,
	})

	return registered, err
}

// earlier returns the id that an earlier attempt of the order got, or "". Concurrent attempts may have registered several: all
// use the lowest, and the Caretaker removes the others. It also removes registrations of deleted runtimes, whose ids cannot be
// used again.
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

// Accept records in the transaction that the order was accepted as this runtime and operation. An earlier order may have
// registered the runtime.
func (r *Registrar) Accept(ctx context.Context, tx storage.Tx, order Order, runtimeID, operationID string) error {
	return r.Rows.AcceptRegistration(ctx, tx, runtimes.Registration{
		Tenant: order.Tenant, Label: r.label(order), RuntimeID: runtimeID, OperationID: operationID,
	}, r.Clock.Now())
}

// Forget unregisters a runtime that was not accepted. If that fails, the Caretaker does it later.
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
			Warn("a runtime that was not accepted is unregistered later")
	}
}

// label returns the label of all attempts of an order. It is a hash because the filters of Director do not accept all characters
// of keys.
func (r *Registrar) label(order Order) string {
	kind, value := "name", order.ShootName
	if order.Key != "" {
		kind, value = "key", order.Key
	}

	hash := sha256.Sum256([]byte(r.Project + "\x00" + kind + "\x00" + value))

	return hex.EncodeToString(hash[:16])
}

// alive reports whether the runtime exists and is not deleted.
func alive(ctx context.Context, rows Rows, runtimeID string) (bool, error) {
	runtime, err := rows.Get(ctx, rows.Reader(), runtimeID)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}

	return err == nil && runtime.DeletedAt.IsZero(), err
}
