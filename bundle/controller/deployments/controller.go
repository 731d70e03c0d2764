package deployments

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/controller/ownwrites"
	"github.com/environment-broker/environment-broker/internal/clients/applier"
)

const (
	// waitInterval is the time between reconciliations while objects are being applied or removed. unhealthyInterval is the time
	// between reconciliations while objects that are not watched are unhealthy.
	waitInterval      = 2 * time.Second
	unhealthyInterval = 10 * time.Second
	// firstRetry is the pause after the first failed installation of a Bundle. It doubles with each further failure, up to maxRetry.
	firstRetry = 10 * time.Second
	maxRetry   = 10 * time.Minute
	// pivotTimeout is how long a pivot may wait for its objects before it fails.
	pivotTimeout = 5 * time.Minute
	// deletionTimeout is the default of spec.deletionTimeout.
	deletionTimeout = 5 * time.Minute
	// defaultNamespace is the default of spec.installNamespace.
	defaultNamespace = "default"
)

// Content reads the content of Bundles.
type Content interface {
	// Load fetches the content of an unpacked Bundle from its status.contentURL. Equal releases must have equal content.
	Load(ctx context.Context, release Release) (Loaded, error)
}

// Loaded is the content of a release.
type Loaded struct {
	Objects []*unstructured.Unstructured
	// Masked lists the strings that conditions and events must not contain.
	Masked []string
}

// Options configures a Reconciler.
type Options struct {
	// Class is the provisionerClassName of the BundleDeployments that the controller installs.
	Class string
	// Client reads and writes BundleDeployments and Bundles, and may use a cache. Reader does not use a cache. It reads Secrets, and
	// Bundles that may be missing from the cache.
	Client client.Client
	Reader client.Reader
	// Namespace contains the Secrets with kubeconfigs.
	Namespace string
	// Hub is the cluster of the BundleDeployments. BundleDeployments without a target are installed on it.
	Hub     *rest.Config
	Content Content
	Events  events.EventRecorder
	Now     func() time.Time
	// HealthInterval is the interval between health checks of the installed objects while they are not watched or not healthy; 0
	// means 1m.
	HealthInterval time.Duration
	// DriftInterval is the interval at which installed objects that are not watched are compared with the Bundle and repaired; 0
	// means 10m.
	DriftInterval time.Duration
	// ResyncInterval is the interval at which watched objects are compared with the Bundle, in case the watches missed a change; 0
	// means 1h.
	ResyncInterval time.Duration
	// UnreachableInterval is the interval between attempts to reach a cluster that does not respond; 0 means 30s.
	UnreachableInterval time.Duration
	// Registry registers the metrics, unless it is nil.
	Registry prometheus.Registerer
}

// Reconciler installs BundleDeployments. It is safe for concurrent use with different BundleDeployments.
type Reconciler struct {
	Options

	applier  *applier.Applier
	clusters *clusters
	watches  *applier.Watches
	changes  *changes
	pivots   *prometheus.CounterVec
	// written records the last write to each BundleDeployment, to detect that the cache does not contain this write yet.
	written ownwrites.Writes

	mu sync.Mutex
	// memory contains the progress of each BundleDeployment, keyed by name.
	memory map[string]*memory
	// failing contains the names of the BundleDeployments whose last installation failed. The value reports whether the next attempt is
	// due immediately. Goroutines of other BundleDeployments set it too, so it is not in the memory.
	failing map[string]bool
	// needing maps each object to the names of the BundleDeployments that need it.
	needing map[need]map[string]bool
}

// New returns a Reconciler and registers its metrics. Call Setup to add the Reconciler to a manager.
func New(options Options) (*Reconciler, error) {
	options.HealthInterval = cmp.Or(options.HealthInterval, time.Minute)
	options.DriftInterval = cmp.Or(options.DriftInterval, 10*time.Minute) //nolint:mnd // documented above
	options.ResyncInterval = cmp.Or(options.ResyncInterval, time.Hour)
	options.UnreachableInterval = cmp.Or(options.UnreachableInterval, 30*time.Second) //nolint:mnd // documented above

	found, err := newClusters(options)
	if err != nil {
		return nil, err
	}

	changes := newChanges()
	made := &Reconciler{
		Options: options, applier: applier.New(applier.Options{Now: options.Now}), clusters: found, watches: applier.NewWatches(changes.report),
		changes: changes, memory: map[string]*memory{}, failing: map[string]bool{}, needing: map[need]map[string]bool{},
	}

	return made, made.register(options.Registry)
}

// pass is one reconciliation of a BundleDeployment.
type pass struct {
	*Reconciler

	deployment *v1alpha1.BundleDeployment
	// status is the status that is written at the end of the reconciliation.
	status *v1alpha1.BundleDeploymentStatus
	memory *memory
	owner  applier.Owner
	// release is the name of the BundleDeployment whose objects are installed or compared. It is spec.dryRunOf in a dry run that
	// sets this field, and otherwise the name of this BundleDeployment.
	release string
	cluster *applier.Cluster
	// applied is the result of applier.Apply. It is zero if this reconciliation has not applied any objects.
	applied applier.Progress
	// replaced is true if the desired Bundle is a replacement of the active one with other content: see isReplaced.
	replaced bool
	// unsafe is true if the desired Bundle contains an unsafe change to a CustomResourceDefinition.
	unsafe atomic.Bool
}

func (p *pass) now() time.Time { return p.Now() }

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, request)
	if err != nil {
		return ownwrites.Retry(err)
	}

	return result, nil
}

// reconcile installs or uninstalls a BundleDeployment as far as it can without waiting.
func (r *Reconciler) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	deployment := &v1alpha1.BundleDeployment{}
	if err := r.Client.Get(ctx, request.NamespacedName, deployment); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.Name)
		}

		return reconcile.Result{}, client.IgnoreNotFound(err)
	}

	if r.written.Missing(deployment) {
		return reconcile.Result{RequeueAfter: ownwrites.Pause}, nil
	}

	if deployment.Spec.ProvisionerClassName != r.Class {
		return reconcile.Result{}, r.letGo(ctx, deployment)
	}

	pass := &pass{
		Reconciler: r, deployment: deployment, status: deployment.Status.DeepCopy(), memory: r.remember(deployment),
		owner: applier.BundleDeployment(deployment.Name), release: deployment.Name,
	}
	pass.begin()

	if !deployment.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(deployment, r.finalizer()) {
			return reconcile.Result{}, nil
		}

		return pass.uninstall(ctx)
	}

	if controllerutil.AddFinalizer(deployment, r.finalizer()) {
		if err := r.patchFinalizers(ctx, deployment); err != nil {
			return reconcile.Result{}, err
		}
	}

	after, err := pass.install(ctx)
	if err := errors.Join(err, pass.write(ctx)); err != nil {
		return reconcile.Result{}, err
	}

	return reconcile.Result{RequeueAfter: after}, nil
}

// write stores the new status if it has changed.
func (p *pass) write(ctx context.Context) error {
	p.end()

	if equality.Semantic.DeepEqual(&p.deployment.Status, p.status) {
		return nil
	}

	p.deployment.Status = *p.status.DeepCopy()
	if err := client.IgnoreNotFound(p.Client.Status().Update(ctx, p.deployment)); err != nil {
		return fmt.Errorf("updating the status of BundleDeployment %s: %w", p.deployment.Name, err)
	}

	p.written.Record(p.deployment)

	return nil
}

// finalizer returns the name of the finalizer of the class. The name is valid because a class is a DNS label.
func (r *Reconciler) finalizer() string { return r.Class + ".core.rukpak.io/uninstall" }

// letGo removes the finalizer of this class from a BundleDeployment that now has another class.
func (r *Reconciler) letGo(ctx context.Context, deployment *v1alpha1.BundleDeployment) error {
	r.forget(deployment.Name)

	if !controllerutil.RemoveFinalizer(deployment, r.finalizer()) {
		return nil
	}

	return r.patchFinalizers(ctx, deployment)
}

// patchFinalizers stores the finalizers of the BundleDeployment. It fails with a conflict if the BundleDeployment has changed
// since it was read.
func (r *Reconciler) patchFinalizers(ctx context.Context, deployment *v1alpha1.BundleDeployment) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": deployment.Finalizers, "resourceVersion": deployment.ResourceVersion,
	}})
	if err != nil {
		return fmt.Errorf("encoding finalizers: %w", err)
	}

	written := deployment.DeepCopy()
	if err := r.Client.Patch(ctx, written, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("updating the finalizers of BundleDeployment %s: %w", deployment.Name, err)
	}

	deployment.ResourceVersion = written.ResourceVersion
	r.written.Record(written)

	return nil
}

// spread lengthens an interval at random, by up to a tenth, so that the reconciliations of many BundleDeployments do not
// coincide.
func spread(interval time.Duration) time.Duration {
	const part = 10

	return interval + rand.N(interval/part+1)
}
