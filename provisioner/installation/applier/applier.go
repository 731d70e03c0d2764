package applier

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

const (
	// FieldManager owns the fields that are set.
	FieldManager = "environment-broker"
	// LabelInstallation is on every installed object; its value is the id of the runtime. Objects without it are never deleted.
	LabelInstallation = "provisioner.environment-broker.io/installation"
	// AnnotationRecreate with the value "true" allows an object to be deleted and created again when an immutable field changes.
	AnnotationRecreate = "provisioner.environment-broker.io/recreate"

	// DefaultBudget is the time after which a call starts no further component.
	DefaultBudget = 20 * time.Second
)

// Manifests returns the manifests of a component by its source. Its errors are of package failure.
type Manifests interface {
	Manifests(ctx context.Context, source string) ([]installation.ManifestFile, error)
}

// Options configure an Applier.
type Options struct {
	Manifests Manifests
	// Budget is the time after which a call starts no further component; 0 means DefaultBudget.
	Budget time.Duration
	Now    func() time.Time
}

// Applier is an installation.Installer by server-side apply. It keeps no state between calls.
type Applier struct {
	manifests Manifests
	budget    time.Duration
	now       func() time.Time
}

var _ installation.Installer = (*Applier)(nil)

// New returns an Applier.
func New(options Options) *Applier {
	if options.Budget == 0 {
		options.Budget = DefaultBudget
	}
	return &Applier{manifests: options.Manifests, budget: options.Budget, now: options.Now}
}

// Install implements installation.Installer. A component that the inventory records as applied and healthy is skipped until the plan is done.
// Then these records are cleared, so that the next Install checks every component.
func (a *Applier) Install(ctx context.Context, cluster *rest.Config, runtimeID string, plan installation.Plan) (installation.Progress, error) {
	work, err := open(ctx, cluster, runtimeID)
	if err != nil {
		return installation.Progress{}, err
	}
	progress, err := a.install(ctx, work, plan)
	return work.end(ctx, progress, err)
}

func (a *Applier) install(ctx context.Context, work *work, plan installation.Plan) (installation.Progress, error) {
	began := a.now()
	for i, component := range plan.Components {
		where := fmt.Sprintf("component %d of %d (%s)", i+1, len(plan.Components), component.Name)
		if a.now().Sub(began) > a.budget {
			return installation.Progress{Message: where + ": comes next"}, nil
		}
		waiting, err := a.component(ctx, work, component)
		if err != nil {
			return installation.Progress{}, explain(err, where, component)
		}
		if waiting != "" {
			return installation.Progress{Message: where + ": " + mask(waiting, component)}, nil
		}
	}
	return work.prune(ctx, plan)
}

// component applies one component and checks its health. waiting names the object that is not ready.
func (a *Applier) component(ctx context.Context, work *work, component installation.Component) (waiting string, err error) {
	files, err := a.manifests.Manifests(ctx, component.Source)
	if err != nil {
		return "", err
	}
	digest, err := digestOf(component, files)
	if err != nil {
		return "", err
	}
	entry := work.inventory.entry(component.Name)
	if entry.Applied == digest && entry.Ready {
		return "", nil
	}
	if entry.Applied != digest {
		content, unknown, err := work.render(ctx, component, files)
		if err != nil || unknown != "" {
			return unknown, err
		}
		if err := work.intend(ctx, entry, content.refs); err != nil {
			return "", err
		}
		if waiting, err := work.apply(ctx, content.objects); err != nil || waiting != "" {
			return waiting, err
		}
		entry.Applied = digest
		work.changed = true
	}
	waiting, missing, err := work.health(ctx, entry.Objects)
	if missing {
		entry.Applied = ""
		work.changed = true
	}
	if err != nil || waiting != "" {
		return waiting, err
	}
	entry.Ready, work.changed = true, true
	return "", nil
}

// work is one call for one cluster.
type work struct {
	client    client.Client
	config    *rest.Config
	runtimeID string
	inventory *inventory
	// changed says that the inventory must be stored.
	changed bool
}

func open(ctx context.Context, cluster *rest.Config, runtimeID string) (*work, error) {
	connected, err := client.New(cluster, client.Options{})
	if err != nil {
		return nil, failure.Wrap(failure.Internal, err, "creating a client of the cluster failed")
	}
	work := &work{client: connected, config: cluster, runtimeID: runtimeID}
	if work.inventory, err = load(ctx, connected, runtimeID); err != nil {
		return nil, explain(err, "the inventory of the installation cannot be read", installation.Component{})
	}
	return work, nil
}

// end stores a changed inventory, also after a failure.
func (w *work) end(ctx context.Context, progress installation.Progress, failed error) (installation.Progress, error) {
	if !w.changed {
		return progress, failed
	}
	if err := w.store(ctx); err != nil && failed == nil {
		return installation.Progress{}, explain(err, "the inventory of the installation cannot be stored", installation.Component{})
	}
	return progress, failed
}

func (w *work) store(ctx context.Context) error {
	err := w.inventory.save(ctx, w.client)
	w.changed = err != nil
	return err
}
