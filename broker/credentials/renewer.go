package credentials

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/reports"
)

const (
	// claimID is the ID in package reports under which one replica at a time renews.
	claimID = "kubeconfigs"
	// every is the interval between two searches for kubeconfigs that are due. batch and concurrency bound the load of a search.
	every       = 10 * time.Second
	batch       = 50
	concurrency = 5
	// retryAfter is the time until a failed renewal is repeated.
	retryAfter = 5 * time.Minute
	// unknownValidity is assumed of a kubeconfig without a client certificate.
	unknownValidity = 4 * time.Hour
)

// Instances reads instances from the database. Get returns storage.ErrNotFound if an instance does not exist.
type Instances interface {
	Get(ctx context.Context, tx storage.Tx, id string) (environment.Instance, error)
}

// Access issues admin kubeconfigs.
type Access interface {
	AdminKubeconfig(ctx context.Context, instance environment.Instance) (secret.String, error)
}

// Kyma decides which objects a runtime has in the control plane.
type Kyma interface {
	Objects(ctx context.Context, instance environment.Instance) (lifecyclemanager.Objects, error)
}

// Client changes Secrets of the control plane.
type Client interface {
	// RenewSecret replaces the kubeconfig in a Secret. If there is none, the error is failure.NotFound.
	RenewSecret(ctx context.Context, ref lifecyclemanager.Ref, kubeconfig secret.String) error
	ApplySecret(ctx context.Context, objects lifecyclemanager.Objects, kubeconfig secret.String) error
	Delete(ctx context.Context, ref lifecyclemanager.Ref) error
}

// Renewer renews kubeconfigs. All fields are required.
type Renewer struct {
	DB        *storage.DB
	Instances Instances
	Objects   *outsideobjects.Store
	Reports   *reports.Store
	Access    Access
	Kyma      Kyma
	Client    Client
	Results   *Results
	Clock     clock.WithTicker
	Log       logrus.FieldLogger
}

// Part returns the background work of the renewer.
func (r Renewer) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "renewal of kubeconfigs", Every: every, Work: r.Renew, Clock: r.Clock, Log: r.Log}.Part()
}

// Renew renews the kubeconfigs that are due, at most batch, unless another replica does. A renewal that fails is due again after
// retryAfter. The first error of the database ends the search.
func (r Renewer) Renew(ctx context.Context) error {
	now := r.Clock.Now()

	claimed, err := r.Reports.Claim(ctx, claimID, now, now.Add(every))
	if err != nil || !claimed {
		return err
	}

	due, err := r.Objects.DueKubeconfigs(ctx, now, batch)
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

			errs[i] = r.renew(ctx, object, now)
		})
	}

	running.Wait()

	return errors.Join(errs...)
}

// renew claims and renews one kubeconfig. It only returns errors of the database.
func (r Renewer) renew(ctx context.Context, object environment.OutsideObject, now time.Time) error {
	claimed, err := r.Objects.PostponeKubeconfig(ctx, object, now, now.Add(retryAfter))
	if err != nil || !claimed {
		return err
	}

	instance, err := r.Instances.Get(ctx, r.DB.Reader(), object.InstanceID)

	switch {
	case errors.Is(err, storage.ErrNotFound) || err == nil && instance.RuntimeID == "":
		return nil // the runtime is being removed, or is left over
	case err != nil:
		return err
	}

	result, validity, err := r.replace(ctx, object, instance)
	if err != nil {
		if ctx.Err() == nil {
			r.Results.count(resultFailed)
			r.Log.WithError(err).WithFields(logrus.Fields{logging.InstanceID: instance.ID, logging.RuntimeID: instance.RuntimeID}).
				Warnf("renewing the kubeconfig for Lifecycle Manager failed, retrying in %s", retryAfter)
		}

		return nil
	}

	r.Results.count(result)

	//nolint:mnd // half of the validity is left for retries
	kept, err := r.Objects.RenewedKubeconfig(ctx, object, now.Add(validity/2), now.Add(validity))
	if err == nil && !kept && result == resultRestored {
		return r.withdraw(ctx, object)
	}

	return err
}

// replace writes a new kubeconfig to the Secret, and creates a missing Secret. validity is how long the kubeconfig is valid.
func (r Renewer) replace(ctx context.Context, object environment.OutsideObject, instance environment.Instance) (result string, validity time.Duration, err error) {
	ref, err := lifecyclemanager.ParseRef(object.Key)
	if err != nil {
		return "", 0, err
	}

	kubeconfig, err := r.Access.AdminKubeconfig(ctx, instance)
	if err != nil {
		return "", 0, err
	}

	validity = unknownValidity
	if _, until := lifecyclemanager.Validity(kubeconfig); !until.IsZero() {
		validity = until.Sub(r.Clock.Now())
	}

	if err := r.Client.RenewSecret(ctx, ref, kubeconfig); !failure.Is(err, failure.NotFound) {
		return resultRenewed, validity, err
	}

	objects, err := r.Kyma.Objects(ctx, instance)
	if err != nil {
		return "", 0, err
	}

	if objects.Secret != ref {
		return "", 0, failure.New(failure.Permanent, "the Secret %s is missing, but the Kyma template asks for %s", ref, objects.Secret)
	}

	return resultRestored, validity, r.Client.ApplySecret(ctx, objects, kubeconfig)
}

// withdraw deletes a Secret that was created although an operation has begun to remove it.
func (r Renewer) withdraw(ctx context.Context, object environment.OutsideObject) error {
	ref, err := lifecyclemanager.ParseRef(object.Key)
	if err != nil {
		return err
	}

	return r.Client.Delete(ctx, ref) //nolint:wrapcheck // names the control plane
}
