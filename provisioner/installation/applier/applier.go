package applier

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/manifest"
)

const (
	// FieldManager owns the fields that are set.
	FieldManager = "environment-broker"
	// LabelInstallation stands on every object that was installed and tells of which runtime. What does not carry it is never deleted.
	LabelInstallation = "provisioner.environment-broker.io/installation"
	// AnnotationRecreate on an object, with the value "true", has it deleted and made anew where a change of it is not possible.
	AnnotationRecreate = "provisioner.environment-broker.io/recreate"

	// DefaultBudget is after how long a call begins with no further component.
	DefaultBudget = 20 * time.Second
)

// Manifests finds what a component consists of. Its errors are of package failure.
type Manifests interface {
	Manifests(ctx context.Context, source string) ([]manifest.File, error)
}

// Options are what an Applier needs.
type Options struct {
	Manifests Manifests
	// Budget is after how long a call begins with no further component; DefaultBudget when it is not set.
	Budget time.Duration
	Now    func() time.Time
}

// Applier is an installation.Installer. It keeps nothing between calls.
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

// Install implements installation.Installer. A component whose apply and health are recorded in the inventory is not looked at again
// until the plan is done; then all is forgotten but what there is, so that the next Install goes over everything.
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

// component brings one component to the cluster and says for what it waits.
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
	// changed tells that the inventory is to be stored.
	changed bool
}

func open(ctx context.Context, cluster *rest.Config, runtimeID string) (*work, error) {
	connected, err := client.New(cluster, client.Options{})
	if err != nil {
		return nil, failure.Wrap(failure.Internal, err, "a client of the cluster cannot be made")
	}
	work := &work{client: connected, config: cluster, runtimeID: runtimeID}
	if work.inventory, err = load(ctx, connected, runtimeID); err != nil {
		return nil, explain(err, "the inventory of the installation cannot be read", installation.Component{})
	}
	return work, nil
}

// end stores what has changed, also when the call failed.
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
