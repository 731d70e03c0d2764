// Package gardenlet simulates Gardener's gardenlet for both gardens: it turns Shoots into runtimes and reports their status like
// a real gardenlet. Durations and faults can be configured.
//
// It works with any API server that serves Gardener's types. The Runtimes interface determines how runtimes are implemented. All
// state is in the objects, so a restarted gardenlet resumes its operations and starts the API servers of the runtimes again. To
// add a fault, extend faults.go and progressAfter.
package gardenlet

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

const (
	// workers is the maximum number of Shoots that are reconciled concurrently. A worker is busy only while it writes or starts a
	// runtime; delays are handled by the queue.
	workers = 16

	// minRetry and maxRetry limit the delay after a failed reconciliation. The delay doubles with each consecutive failure of a
	// Shoot.
	minRetry = 50 * time.Millisecond
	maxRetry = 5 * time.Second
)

// Runtimes starts and stops the API servers of runtimes. Calls for different runtimes can be concurrent; calls for the same
// runtime are not.
type Runtimes interface {
	// Start starts the API server of a runtime and returns its endpoint. It is idempotent. The server accepts client certificates
	// that clientCA (PEM) has signed.
	Start(ctx context.Context, technicalID string, clientCA []byte) (Endpoint, error)
	// Stop stops the API server of a runtime and deletes its objects. It is idempotent: an unknown runtime is not an error.
	Stop(ctx context.Context, technicalID string) error
}

// Endpoint contains the address and the CA of a runtime's API server.
type Endpoint struct {
	// URL may include a path. It can change whenever the garden starts.
	URL string
	// CA is the certificate authority (PEM) that signed the serving certificate.
	CA []byte
}

// Options configures a gardenlet.
type Options struct {
	Client client.WithWatch
	// Project is the name of the project. Its Shoots are in Namespace(Project).
	Project  string
	Runtimes Runtimes
	// Creation is how long the creation or a change of a Shoot takes; Deletion is how long its deletion takes. Kubernetes stores
	// times in whole seconds, so an operation can be shorter by up to one second.
	Creation time.Duration
	Deletion time.Duration
	// SeedName is the name of the Seed to which the gardenlet binds Shoots. If it is empty, the gardenlet does not bind them.
	SeedName string
	// DNSDomain is the suffix of the Shoot domain <shoot>.<project>.<DNSDomain>. If it is empty, the API server sets the domain when
	// the Shoot is bound.
	DNSDomain string
	Log       logrus.FieldLogger
}

// Gardenlet reconciles the Shoots of one project while Run runs.
type Gardenlet struct {
	Options

	namespace string
	// authorityKey returns the private key that the client CAs of all runtimes share, because generating a key is slow.
	authorityKey func() (*rsa.PrivateKey, error)
}

// New returns a gardenlet. The gardenlet does nothing until Run is called.
func New(options Options) (*Gardenlet, error) {
	switch {
	case options.Client == nil || options.Runtimes == nil || options.Log == nil:
		return nil, errors.New("gardenlet: Client, Runtimes or Log is missing")
	case options.Project == "":
		return nil, errors.New("gardenlet: Project is missing")
	case options.Creation < 0 || options.Deletion < 0:
		return nil, errors.New("gardenlet: Creation or Deletion is negative")
	}
	return &Gardenlet{
		Options: options, namespace: Namespace(options.Project), authorityKey: sync.OnceValues(certificate.NewKey),
	}, nil
}

// Namespace returns the namespace of a project's Shoots, following Gardener's convention.
func Namespace(project string) string { return "garden-" + project }

// TechnicalID returns the name of a Shoot's runtime, following Gardener's convention.
func TechnicalID(project, shoot string) string {
	return technicalIDPrefix + project + technicalIDSeparator + shoot
}

// ParseTechnicalID returns the project and the name of the Shoot of a runtime. Gardener allows no "--" in the name of a project.
func ParseTechnicalID(technicalID string) (project, shoot string) {
	project, shoot, _ = strings.Cut(strings.TrimPrefix(technicalID, technicalIDPrefix), technicalIDSeparator)
	return project, shoot
}

const (
	technicalIDPrefix    = "shoot" + technicalIDSeparator
	technicalIDSeparator = "--"
)

// queue contains the names of Shoots to reconcile, immediately or after a delay.
type queue = workqueue.TypedRateLimitingInterface[string]

// Run reconciles Shoots until the context ends, which is not an error. It starts with all existing Shoots and returns after all
// reconciliations in progress have ended.
func (g *Gardenlet) Run(ctx context.Context) error {
	shoots := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetry, maxRetry))
	informer, err := g.informer(shoots)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	for range workers {
		running.Go(func() { g.work(ctx, shoots) })
	}
	<-ctx.Done()
	shoots.ShutDown()
	running.Wait()
	return nil
}

// informer returns an informer that queues every Shoot that exists, changes or is deleted. Deleted Shoots are queued because
// their runtime may still be running if the gardenlet was killed during the deletion.
func (g *Gardenlet) informer(shoots queue) (cache.SharedIndexInformer, error) {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &gardencorev1beta1.ShootList{}
			err := g.Client.List(ctx, list, &client.ListOptions{Namespace: g.namespace, Raw: &options})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			list := &gardencorev1beta1.ShootList{}
			return g.Client.Watch(ctx, list, &client.ListOptions{Namespace: g.namespace, Raw: &options})
		},
	}
	informer := cache.NewSharedIndexInformer(source, &gardencorev1beta1.Shoot{}, 0, nil)
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		g.Log.WithError(err).Debug("watching the shoots failed; restarting the watch")
	}); err != nil {
		return nil, fmt.Errorf("setting the error handler of the watch: %w", err)
	}
	enqueue := func(object any) {
		if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
			shoots.Add(name.Name)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: enqueue,
	}); err != nil {
		return nil, fmt.Errorf("watching the shoots: %w", err)
	}
	return informer, nil
}

// work reconciles Shoots from the queue until the queue is shut down. The queue assigns a Shoot to only one worker at a time. If
// the Shoot changes during a reconciliation, the queue schedules it again. Reconciliations of a Shoot therefore never overlap,
// and no change is missed.
func (g *Gardenlet) work(ctx context.Context, shoots queue) {
	for {
		name, shutdown := shoots.Get()
		if shutdown {
			return
		}
		g.handle(ctx, shoots, name)
		shoots.Done(name)
	}
}

// handle reconciles a Shoot once and queues it again: after an error with an increasing delay, otherwise when its next progress
// is due.
func (g *Gardenlet) handle(ctx context.Context, shoots queue, name string) {
	next, err := g.reconcile(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		log := g.Log.WithField("shoot", name).WithError(err)
		if apierrors.IsConflict(err) {
			log.Debug("the shoot has changed during its reconciliation; trying again")
		} else {
			log.Warn("reconciling the shoot failed; trying again")
		}
		shoots.AddRateLimited(name)
		return
	}
	shoots.Forget(name)
	if next > 0 {
		shoots.AddAfter(name, next)
	}
}
