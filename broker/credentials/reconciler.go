package credentials

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/process/reconciling"
)

// readTime is added to the timeout of a request to the Reconciler, for reading the kubeconfig and the Kyma configuration.
const readTime = time.Minute

// Reconciler is a Holder that stores kubeconfigs as part of its clusters. It cannot replace the kubeconfig alone, so a renewal
// sends the whole cluster again, as the last operation sent it. A late request would revert a change of Kyma, or register a
// deleted runtime again, so a renewal excludes operations.
type Reconciler struct {
	Client interface {
		Apply(ctx context.Context, cluster reconciler.Cluster) (reconciler.State, error)
	}
	// Sent returns the configuration that an operation sent last, or "" if none was stored.
	Sent interface {
		Configuration(ctx context.Context, object environment.OutsideObject) (secret.String, error)
	}
	// Kyma returns the Kyma configuration that an operation would send now. A renewal needs it if an earlier release registered the
	// runtime, because earlier releases did not store what they sent.
	Kyma interface {
		Complete(ctx context.Context, instance environment.Instance) (*environment.Kyma, error)
		Overrides(ctx context.Context, instance environment.Instance) (*environment.Kyma, error)
	}
	// ShootDomain is the parent domain of the clusters' domains, or empty.
	ShootDomain string
	// Timeout limits a request to the Reconciler.
	Timeout time.Duration
	Clock   clock.PassiveClock
}

// Title implements Holder.
func (Reconciler) Title() string { return "the Reconciler" }

// Limit implements Holder.
func (r Reconciler) Limit() time.Duration { return r.Timeout + readTime }

// Replace sends the cluster with the new kubeconfig. The Reconciler accepts a new kubeconfig only together with a new
// description, so the description is the time of the renewal.
func (r Reconciler) Replace(ctx context.Context, object environment.OutsideObject, instance environment.Instance, kubeconfig secret.String,
	_ func(context.Context) error,
) error {
	kyma := instance.Request.Cluster.Kyma
	if object.Key != instance.RuntimeID || !kyma.InstalledBy(environment.InstallerReconciler) || kyma.Version == "" {
		return failure.New(failure.Permanent, "the Reconciler does not install Kyma on the runtime of the instance: its creation failed, or the runtime was replaced")
	}

	cluster, err := r.cluster(ctx, object, instance, kubeconfig)
	if err != nil {
		return err
	}

	_, err = r.Client.Apply(ctx, cluster)
	if err != nil && !restclient.NotExecuted(err) {
		return &uncertainError{err}
	}

	return err //nolint:wrapcheck // names the Reconciler
}

// cluster returns the cluster that was sent last, with the new kubeconfig. If an earlier release sent the cluster and did not
// store it, the result is the cluster that an operation would send now.
func (r Reconciler) cluster(ctx context.Context, object environment.OutsideObject, instance environment.Instance, kubeconfig secret.String,
) (reconciler.Cluster, error) {
	description := "renewal " + r.Clock.Now().UTC().Format(time.RFC3339Nano)

	sent, err := r.Sent.Configuration(ctx, object)
	if err != nil {
		return reconciler.Cluster{}, err //nolint:wrapcheck // carries a failure.Kind
	}

	if sent != "" {
		return reconciler.Decode(sent, kubeconfig, description) //nolint:wrapcheck // carries a failure.Kind
	}

	// The values in the control plane may have changed since the last operation.
	if instance.Request.Cluster.Kyma, err = r.Kyma.Complete(ctx, instance); err != nil {
		return reconciler.Cluster{}, err //nolint:wrapcheck // carries a failure.Kind
	}

	if instance.Request.Cluster.Kyma, err = r.Kyma.Overrides(ctx, instance); err != nil {
		return reconciler.Cluster{}, err //nolint:wrapcheck // carries a failure.Kind
	}

	instance.OverrideServiceManager()
	instance.OverrideBusola()

	return reconciler.NewCluster(instance, kubeconfig, reconciling.Domain(instance, r.ShootDomain), description), nil
}
