package credentials

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

const (
	// claimID is the ID under which package reports ensures that only one replica starts a search in each interval.
	claimID = "kubeconfigs"
	// every is the interval between two searches for kubeconfigs that are due. batch and concurrency bound the load of a search.
	every       = 10 * time.Second
	batch       = 50
	concurrency = 5
	// retryAfter is the pause before a failed renewal is retried. Package restclient limits the pauses that systems request to
	// this length.
	retryAfter = 5 * time.Minute
	// restoreTime limits the total duration of the calls that create a missing kubeconfig.
	restoreTime = time.Minute
	// spare is added to the time limit of an exclusive renewal, for differences between clocks and for the last write.
	spare = 30 * time.Second
)

// Instances reads instances from the database. Get returns storage.ErrNotFound if an instance does not exist.
type Instances interface {
	Get(ctx context.Context, tx storage.Tx, id string) (environment.Instance, error)
}

// Access issues admin kubeconfigs.
type Access interface {
	AdminKubeconfig(ctx context.Context, instance environment.Instance) (secret.String, error)
}

// Holder is a system that stores runtime kubeconfigs.
type Holder interface {
	// Title is the name of the system in messages, such as "Lifecycle Manager".
	Title() string
	// Limit is the maximum duration of a renewal that excludes operations of the instance. Renewals must exclude operations if a
	// late request could overwrite the request of an operation. 0 means that renewals do not exclude operations.
	Limit() time.Duration
	// Replace replaces the kubeconfig in the system. Before it creates a missing kubeconfig, it calls restore; if restore fails,
	// it returns that error. All calls after restore end within restoreTime.
	Replace(ctx context.Context, object environment.OutsideObject, instance environment.Instance, kubeconfig secret.String,
		restore func(context.Context) error) error
}

// Renewer renews kubeconfigs. All fields are required.
type Renewer struct {
	DB        Database
	Instances Instances
	Objects   Objects
	Events    *instanceevents.Store
	Reports   Reports
	Access    Access
	// Holders are the systems that are turned on. The keys are the system names of package environment.
	Holders map[string]Holder
	// Validity returns the period in which a kubeconfig is valid, or zero times if the kubeconfig does not contain it.
	Validity func(kubeconfig secret.String) (from, until time.Time)
	Results  *Results
	Clock    clock.WithTicker
	Log      logrus.FieldLogger
}

// Part returns the lifecycle.Part that calls Renew periodically.
func (r Renewer) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "kubeconfig renewal", Every: every, Work: r.Renew, Clock: r.Clock, Log: r.Log}.Part()
}

// Renew renews at most batch kubeconfigs that are due, unless another replica has started a search in this interval. A failed renewal
// is due again after retryAfter. Renew returns only errors of the database.
func (r Renewer) Renew(ctx context.Context) error {
	now := r.Clock.Now()

	claimed, err := r.Reports.Claim(ctx, claimID, now, now.Add(every))
	if err != nil || !claimed {
		return err
	}

	due, err := r.Objects.DueCredentials(ctx, slices.Sorted(maps.Keys(r.Holders)), now, batch)
	if err != nil {
		return err
	}

	var (
		running sync.WaitGroup
		errs    = make([]error, len(due))
		free    = make(chan struct{}, concurrency)
	)

	for i, object := range due {
		free <- struct{}{}

		running.Go(func() {
			defer func() { <-free }()

			errs[i] = r.renew(ctx, r.Holders[object.System], object)
		})
	}

	running.Wait()

	return errors.Join(errs...)
}

// renew reserves and renews one kubeconfig. It returns only errors of the database.
func (r Renewer) renew(ctx context.Context, holder Holder, object environment.OutsideObject) error {
	now := r.Clock.Now()
	renewal := outsideobjects.Renewal{Object: object, Now: now, RetryAt: now.Add(retryAfter)}
	limited := ctx

	if limit := holder.Limit(); limit > 0 {
		renewal.Until = now.Add(limit + spare)

		var end context.CancelFunc

		limited, end = context.WithTimeout(ctx, limit)
		defer end()
	}

	began, err := r.Objects.BeginRenewal(ctx, renewal)
	if err != nil || !began {
		return err
	}

	instance, err := r.Instances.Get(ctx, r.DB.Reader(), object.InstanceID)

	switch {
	case errors.Is(err, storage.ErrNotFound) || err == nil && instance.RuntimeID == "": // the runtime is being removed, or is a leftover
		return r.end(ctx, renewal, holder.Title(), outsideobjects.Result{DueAt: renewal.RetryAt}, environment.Event{})
	case err != nil:
		return err
	}

	outcome, err := r.replace(limited, holder, object, instance, func(ctx context.Context) error {
		return r.restore(ctx, &renewal)
	})

	switch {
	case errors.Is(err, errRemoved):
		return r.end(ctx, renewal, holder.Title(), outsideobjects.Result{DueAt: renewal.RetryAt}, environment.Event{})
	case err != nil:
		return r.failed(ctx, holder, renewal, instance, err)
	default:
		return r.end(ctx, renewal, holder.Title(), outcome, environment.Event{
			Result: resultRenewed, Message: "the kubeconfig for " + holder.Title() + " was renewed",
		})
	}
}

// errRemoved ends a restoration, because an operation is removing the object.
var errRemoved = errors.New("an operation is removing the object")

// restore reserves the object and stores the intent to restore it, so that an operation that removes the object waits for the
// restoration. The renewal is then recorded as a restoration, even if another replica ends it.
func (r Renewer) restore(ctx context.Context, renewal *outsideobjects.Renewal) error {
	until, reserved := r.Clock.Now().Add(restoreTime+spare), false

	err := r.DB.InTx(ctx, func(tx storage.Tx) error {
		// Events.Begin locks the instance. Lock it before the object, in the same order as a deletion.
		err := r.Events.Begin(ctx, tx, renewal.Object.InstanceID, renewal.Object.System, r.Clock.Now())
		if err == nil {
			reserved, err = r.Objects.Reserve(ctx, tx, renewal.Object, until)
		}

		if err == nil && !reserved {
			err = errRemoved
		}

		return err
	})
	if err != nil {
		return err
	}

	renewal.Until = until

	return nil
}

// end records the result of a renewal together with the event, if there is one, and counts a successful renewal. If the intent to
// restore the kubeconfig was stored, the renewal counts as a restoration.
func (r Renewer) end(ctx context.Context, renewal outsideobjects.Renewal, title string, result outsideobjects.Result, event environment.Event) error {
	object := renewal.Object
	event.InstanceID, event.System, event.LastAt = object.InstanceID, object.System, r.Clock.Now()
	succeeded := event.Result == resultRenewed

	err := r.DB.InTx(ctx, func(tx storage.Tx) error {
		if succeeded {
			begun, err := r.Events.Begun(ctx, tx, object.InstanceID, object.System)
			if err != nil {
				return err
			}

			if begun {
				event.Result, event.Message = resultRestored, "the kubeconfig for "+title+" was missing and was restored"
			}
		}

		// Events.Record locks the instance. Lock it before the intent and the object, in the same order as a deletion.
		if event.Result != "" {
			if err := r.Events.Record(ctx, tx, event); err != nil {
				return err
			}
		}

		if succeeded {
			if err := r.Events.End(ctx, tx, object.InstanceID, object.System); err != nil {
				return err
			}
		}

		return r.Objects.EndRenewal(ctx, tx, renewal, result)
	})
	if err == nil && succeeded {
		r.Results.count(object.System, event.Result)
	}

	return err
}

// replace issues a kubeconfig and passes it to the holder.
func (r Renewer) replace(ctx context.Context, holder Holder, object environment.OutsideObject, instance environment.Instance,
	restore func(context.Context) error,
) (outsideobjects.Result, error) {
	kubeconfig, err := r.Access.AdminKubeconfig(ctx, instance)
	if err != nil {
		return outsideobjects.Result{}, err //nolint:wrapcheck // names the Provisioner
	}

	_, until := r.Validity(kubeconfig)
	issued := environment.NewCredential(r.Clock.Now(), until)

	return outsideobjects.Result{DueAt: issued.RenewAt, IssuedAt: issued.IssuedAt, ExpiresAt: issued.ExpiresAt},
		holder.Replace(ctx, object, instance, kubeconfig, restore) //nolint:wrapcheck // names the system
}

// uncertainError is the error of a request that the system may still execute later.
type uncertainError struct{ error }

// Unwrap returns the error of the request, which carries a failure.Kind.
func (e *uncertainError) Unwrap() error { return e.error }

// failed records a failed renewal. If the system may still execute the request, operations of the instance wait until the
// reservation expires. If the replica is stopping, failed records nothing: the reservation expires, and the next attempt is already
// scheduled.
func (r Renewer) failed(ctx context.Context, holder Holder, renewal outsideobjects.Renewal, instance environment.Instance, cause error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // see above
	}

	r.Results.count(renewal.Object.System, resultFailed)
	r.Log.WithError(cause).WithFields(logrus.Fields{logging.InstanceID: instance.ID, logging.RuntimeID: instance.RuntimeID}).
		Warnf("renewing the kubeconfig for %s failed, retrying in %s", holder.Title(), retryAfter)

	// The column of Problem is not encrypted, so Problem omits the detail of the error, which may quote the system's response. The
	// log contains the detail.
	result := outsideobjects.Result{DueAt: r.Clock.Now().Add(retryAfter), Problem: failure.Of(cause).Text}
	if _, uncertain := errors.AsType[*uncertainError](cause); uncertain {
		result.Until = renewal.Until
	}

	return r.end(ctx, renewal, holder.Title(), result, environment.Event{
		Result: resultFailed, Message: "renewing the kubeconfig for " + holder.Title() + " failed: " + result.Problem,
	})
}
