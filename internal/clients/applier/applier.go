package applier

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultBudget is the default of Options.Budget.
const DefaultBudget = 20 * time.Second

// Options configure an Applier.
type Options struct {
	// Budget is the time after which a call does not start another part; 0 means DefaultBudget. A call may take longer, because
	// it finishes the part in progress.
	Budget time.Duration
	// Now is the clock for the budget.
	Now func() time.Time
}

// Applier applies and removes the objects of owners. It has no state between calls and is safe for concurrent use.
type Applier struct {
	options Options
}

// New returns an Applier.
func New(options Options) *Applier {
	options.Budget = cmp.Or(options.Budget, DefaultBudget)
	return &Applier{options}
}

// Apply installs the content on the cluster, and removes objects of the owner's earlier content that the new content omits. Each
// call does a bounded amount of work, so callers repeat it until Progress.Done. A call after a crash continues the work. While an
// installation is in progress, Apply skips parts that the inventory records as applied and healthy. When it is done, Apply clears
// these records, so that the next call checks and repairs every part. With Content.SkipUnchanged, the call that is done has checked
// every part. All errors are of type *failure.Error.
func (a *Applier) Apply(ctx context.Context, cluster *Cluster, owner Owner, content Content) (Progress, error) {
	return a.call(ctx, cluster, owner, func(work *work) (Progress, error) { return a.apply(ctx, work, content) })
}

// apply applies all parts in order until one of them is not ready or the budget is used up. After the last part, it calls prune.
func (a *Applier) apply(ctx context.Context, work *work, content Content) (Progress, error) {
	work.checkDefinition = content.CheckDefinition
	if content.Check != nil {
		if err := content.Check(ctx); err != nil {
			return Progress{}, work.explain(err, "checking the "+work.owner.part+"s", Part{})
		}
	}
	for i, part := range content.Parts {
		where := work.owner.where(i, len(content.Parts), part.Name)
		if a.exhausted(work) {
			return Progress{Message: where + ": not started yet"}, nil
		}
		waiting, err := work.part(ctx, part, content)
		if err != nil {
			return Progress{}, work.explain(err, where, part)
		}
		if waiting != "" {
			return Progress{Message: where + ": " + part.mask(waiting)}, nil
		}
	}
	progress, err := work.prune(ctx, content)
	if err != nil {
		return progress, work.explain(err, work.owner.former()+" cannot be removed", Part{})
	}
	// Somebody may have changed the objects of a skipped part since an earlier call applied it. prune has cleared the recorded progress, so
	// this compares every part.
	if progress.Done && work.skipped && content.SkipUnchanged {
		work.skipped = false
		return a.apply(ctx, work, content)
	}
	return progress, nil
}

// exhausted reports whether the call has used up its budget.
func (a *Applier) exhausted(work *work) bool {
	return a.options.Now().Sub(work.began) > a.options.Budget
}

// work is the state of one call for one cluster.
type work struct {
	client  client.Client
	cluster *Cluster
	owner   Owner
	began   time.Time

	inventory *inventory
	// changed reports whether the inventory may differ from the stored one.
	changed bool
	// skipped reports whether this call has skipped a part that an earlier call applied.
	skipped bool

	// checkDefinition is the Content.CheckDefinition of the content that this call applies or compares.
	checkDefinition func(ctx context.Context, cluster client.Reader, present, wanted *unstructured.Unstructured) error

	// others contains the results of otherVersion.
	others map[schema.GroupVersionKind]string

	seenMutex sync.Mutex
	// seen contains the objects that this call has found in the wanted state or has applied.
	seen map[ref]Object
}

// call loads the inventory and calls do. It stores a changed inventory even if do fails, so that the next call continues from
// that state. An error from do takes precedence over an error from storing the inventory.
func (a *Applier) call(ctx context.Context, cluster *Cluster, owner Owner, do func(*work) (Progress, error)) (Progress, error) {
	work := &work{
		client: cluster.client, cluster: cluster, owner: owner, began: a.options.Now(), others: map[schema.GroupVersionKind]string{},
	}
	if err := work.load(ctx); err != nil {
		return Progress{}, work.explain(err, "the inventory of "+owner.title+" cannot be read", Part{})
	}
	progress, failed := do(work)
	if work.changed {
		if err := work.store(ctx); err != nil && failed == nil {
			return Progress{}, work.explain(err, "the inventory of "+owner.title+" cannot be stored", Part{})
		}
	}
	return progress, failed
}

func (w *work) load(ctx context.Context) (err error) {
	w.inventory, err = load(ctx, w.client, w.owner)
	return err
}

// store writes the inventory. If the write fails, changed stays true, and call tries again before it returns.
func (w *work) store(ctx context.Context) error {
	err := w.inventory.save(ctx, w.client)
	w.changed = err != nil
	return err
}
