package applier

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

const (
	// FieldManager is the field manager of all applied objects. An apply removes the fields that FieldManager owns and the
	// release no longer sets.
	FieldManager = "environment-broker"
	// LabelInstallation is the label of every installed object. Its value is the ID of the runtime. The applier deletes only
	// objects with this label and value.
	LabelInstallation = "provisioner.environment-broker.io/installation"
	// AnnotationRecreate is an annotation for manifests of releases. If its value is "true" and a release changes an immutable
	// field of the object, the applier deletes the object and creates it again.
	AnnotationRecreate = "provisioner.environment-broker.io/recreate"

	// DefaultBudget is the default of Options.Budget.
	DefaultBudget = 20 * time.Second
)

// Manifests provides the manifests of components. releases.Catalog implements it. Errors come from package failure.
type Manifests interface {
	// Manifests returns the files for Component.Source. It must return the same content on every call.
	Manifests(ctx context.Context, source string) ([]installation.ManifestFile, error)
}

// Options configure an Applier.
type Options struct {
	Manifests Manifests
	// Budget is the time after which a call starts no further component; 0 means DefaultBudget. A call may take longer, because
	// it finishes the component in progress.
	Budget time.Duration
	// Now is the clock for the budget.
	Now func() time.Time
}

// Applier implements installation.Installer with server-side apply. It has no state between calls and is safe for concurrent
// use.
type Applier struct {
	options Options
}

var _ installation.Installer = (*Applier)(nil)

// New returns an Applier.
func New(options Options) *Applier {
	options.Budget = cmp.Or(options.Budget, DefaultBudget)
	return &Applier{options}
}

// Install implements installation.Installer. While an installation is in progress, it skips components that the inventory records
// as applied and healthy. When the installation is done, it clears these records, so that the next one checks and repairs every
// component.
func (a *Applier) Install(ctx context.Context, cluster *rest.Config, runtimeID string, plan installation.Plan) (installation.Progress, error) {
	return a.call(ctx, cluster, runtimeID, func(work *work) (installation.Progress, error) { return a.install(ctx, work, plan) })
}

// install checks the external components, and applies all components in the order of the plan until one of them is not ready or the budget is used up. Each component
// waits for its dependencies to be ready. After the last component, install calls prune.
func (a *Applier) install(ctx context.Context, work *work, plan installation.Plan) (installation.Progress, error) {
	if err := plan.CheckExternal(func(component installation.Component) ([]installation.ManifestFile, error) {
		return a.options.Manifests.Manifests(ctx, component.Source)
	}); err != nil {
		return installation.Progress{}, explain(err, "checking the components", installation.Component{})
	}
	for i, component := range plan.Components {
		where := fmt.Sprintf("component %d of %d (%s)", i+1, len(plan.Components), component.Name)
		if a.exhausted(work) {
			return installation.Progress{Message: where + ": is next"}, nil
		}
		waiting, err := a.component(ctx, work, component)
		if err != nil {
			return installation.Progress{}, explain(err, where, component)
		}
		if waiting != "" {
			return installation.Progress{Message: where + ": " + mask(waiting, component)}, nil
		}
	}
	progress, err := work.prune(ctx, plan)
	if err != nil {
		return progress, explain(err, formerObjects+" cannot be removed", installation.Component{})
	}
	return progress, nil
}

// exhausted reports whether the call has used up its budget.
func (a *Applier) exhausted(work *work) bool {
	return a.options.Now().Sub(work.began) > a.options.Budget
}

// component applies one component and checks its health. waiting is "" if the component is ready. Otherwise it names the object
// that is not ready, and the next call continues. The inventory lists the objects before they are applied and marks the component
// as applied only afterwards, so no object is lost in a crash.
func (a *Applier) component(ctx context.Context, work *work, component installation.Component) (waiting string, err error) {
	files, err := a.options.Manifests.Manifests(ctx, component.Source)
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
	// Somebody has deleted an object since it was applied. The next call applies the component again.
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

// work is the state of one call for one cluster.
type work struct {
	client    client.Client
	config    *rest.Config
	runtimeID string
	began     time.Time
	inventory *inventory
	// changed reports whether the inventory differs from the stored one.
	changed bool
}

// call connects to the cluster, loads the inventory and calls do. It stores a changed inventory even if do fails, so that the
// next call continues from there. An error from do takes precedence over an error from storing the inventory.
func (a *Applier) call(ctx context.Context, cluster *rest.Config, runtimeID string, do func(*work) (installation.Progress, error),
) (installation.Progress, error) {
	connected, err := client.New(cluster, client.Options{})
	if err != nil {
		return installation.Progress{}, failure.Wrap(failure.Internal, err, "creating a client for the cluster failed")
	}
	work := &work{client: connected, config: cluster, runtimeID: runtimeID, began: a.options.Now()}
	if work.inventory, err = load(ctx, connected, runtimeID); err != nil {
		return installation.Progress{}, explain(err, "the inventory of the installation cannot be read", installation.Component{})
	}
	progress, failed := do(work)
	if work.changed {
		if err := work.store(ctx); err != nil && failed == nil {
			return installation.Progress{}, explain(err, "the inventory of the installation cannot be stored", installation.Component{})
		}
	}
	return progress, failed
}

// store writes the inventory. If the write fails, call repeats it before it returns.
func (w *work) store(ctx context.Context) error {
	err := w.inventory.save(ctx, w.client)
	w.changed = err != nil
	return err
}
