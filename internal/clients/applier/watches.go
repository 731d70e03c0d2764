package applier

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MaxWatches is the maximum number of kinds that are watched on a cluster. Objects of further kinds are not watched.
const MaxWatches = 64

// Watches watches the installed objects of BundleDeployments. All BundleDeployments that use the same connection share one watch
// per kind. The watch starts when the first BundleDeployment needs it and ends when none needs it anymore. Nothing is watched
// before Run is called and after it has ended.
type Watches struct {
	changed func(owner string)

	mutex    sync.Mutex
	base     context.Context //nolint:containedctx // watches outlive the calls that start them
	running  sync.WaitGroup
	clusters map[*Cluster]*watchedCluster
	// owners maps the name of a BundleDeployment to its cluster.
	owners map[string]*watchedCluster
}

// watchedCluster contains the watches of one connection.
type watchedCluster struct {
	cluster *Cluster
	total   atomic.Int64
	kinds   map[ref]*kindWatch
	// objects maps the name of a BundleDeployment to its objects.
	objects map[string][]Object
}

// View describes the objects of a BundleDeployment in the state that the watches have received.
type View struct {
	// Complete reports whether all objects are watched, and whether the watches have received a state of each object that is at
	// least as new as the state passed to Follow. If it is false, the other fields are incomplete.
	Complete bool
	// Changed reports whether an object is missing or was changed by somebody else.
	Changed bool
	// Problems describes the objects that are missing or not healthy.
	Problems []string
}

// NewWatches returns Watches that call changed with the name of a BundleDeployment when its View may have changed. changed must
// not block and must not call methods of the Watches.
func NewWatches(changed func(owner string)) *Watches {
	return &Watches{changed: changed, clusters: map[*Cluster]*watchedCluster{}, owners: map[string]*watchedCluster{}}
}

// Run allows Follow to start watches until the context ends, and then waits until all watches have stopped.
func (w *Watches) Run(ctx context.Context) error {
	w.mutex.Lock()
	w.base = ctx
	w.mutex.Unlock()

	<-ctx.Done()
	w.mutex.Lock()   // from here on, no earlier call of Follow can still start a watch
	w.mutex.Unlock() //nolint:staticcheck // as above
	w.running.Wait()

	return nil
}

// Follow watches the objects of a BundleDeployment, and stops watching objects that only earlier calls named.
func (w *Watches) Follow(cluster *Cluster, owner string, objects []Object) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	if w.base == nil || w.base.Err() != nil || cluster.watching == nil {
		return
	}

	if former := w.owners[owner]; former != nil && former.cluster != cluster {
		w.unfollow(owner)
	}

	on := w.clusters[cluster]
	if on == nil {
		on = &watchedCluster{cluster: cluster, kinds: map[ref]*kindWatch{}, objects: map[string][]Object{}}
		w.clusters[cluster] = on
	}

	w.owners[owner], on.objects[owner] = on, slices.Clone(objects)

	for _, object := range objects {
		if kind := object.ref.withoutName(); on.kinds[kind] == nil && len(on.kinds) < MaxWatches {
			w.start(on, kind)
		}
	}

	on.stopUnused()
}

// Unfollow stops the watches that only this BundleDeployment needs.
func (w *Watches) Unfollow(owner string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	w.unfollow(owner)
}

func (w *Watches) unfollow(owner string) {
	on := w.owners[owner]
	if on == nil {
		return
	}

	delete(w.owners, owner)
	delete(on.objects, owner)
	on.stopUnused()

	if len(on.objects) == 0 {
		delete(w.clusters, on.cluster)
	}
}

func (w *Watches) start(on *watchedCluster, kind ref) {
	ctx, cancel := context.WithCancel(w.base)
	started := &kindWatch{cluster: on.cluster, kind: kind, total: &on.total, stop: cancel, records: map[client.ObjectKey]record{}}
	started.changed = func(owners ...string) {
		for _, owner := range owners {
			if owner != "" {
				w.changed(owner)
			}
		}
	}
	started.state = func() {
		for _, owner := range w.following(on, kind) {
			w.changed(owner)
		}
	}
	on.kinds[kind] = started

	w.running.Go(func() { started.run(ctx) })
}

// following returns the names of the BundleDeployments that have objects of the given kind on a cluster.
func (w *Watches) following(on *watchedCluster, kind ref) (owners []string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	for owner, objects := range on.objects {
		if slices.ContainsFunc(objects, func(object Object) bool { return object.ref.withoutName() == kind }) {
			owners = append(owners, owner)
		}
	}

	return owners
}

// stopUnused stops the watches of the kinds that no BundleDeployment uses.
func (c *watchedCluster) stopUnused() {
	used := map[ref]bool{}

	for _, objects := range c.objects {
		for _, object := range objects {
			used[object.ref.withoutName()] = true
		}
	}

	for kind, watched := range c.kinds {
		if !used[kind] {
			watched.stop()
			delete(c.kinds, kind)
		}
	}
}

// Look returns the known state of the objects of a BundleDeployment on a cluster. The View is incomplete unless Follow has been
// called for this BundleDeployment on this cluster.
func (w *Watches) Look(cluster *Cluster, owner string) View {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	on := w.owners[owner]
	if on == nil || on.cluster != cluster || w.base.Err() != nil {
		return View{}
	}

	view := View{Complete: true}

	objects := on.objects[owner]
	for i := range objects {
		watched := on.kinds[objects[i].ref.withoutName()]
		if watched == nil || !watched.look(&objects[i], owner, &view) {
			return View{}
		}
	}

	return view
}

// look adds the known state of an object to a view. It returns false if the records are not valid, or if they might not include the
// last write of this replica. If the version of the object is unknown, any state is accepted.
func (k *kindWatch) look(object *Object, owner string, view *View) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()

	if !k.synced {
		return false
	}

	found, exists := k.records[object.ref.key()]

	switch exists = exists && found.owner == owner; {
	case !exists && k.version < object.version, exists && found.version < object.version:
		return false // the last write has not been received yet
	case !exists:
		view.Changed = true
		view.Problems = append(view.Problems, object.ref.String()+" is missing")

		return true
	case object.version == 0:
		object.version, object.digest = found.version, found.digest
	}

	if found.version > object.version && (object.digest == "" || found.digest != object.digest) {
		view.Changed = true
	}

	if found.problem != "" {
		view.Problems = append(view.Problems, found.problem)
	}

	return true
}

// Count returns the number of watches and of watched objects.
func (w *Watches) Count() (watches, objects int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	for _, on := range w.clusters {
		watches += len(on.kinds)
		objects += int(on.total.Load())
	}

	return watches, objects
}

// withoutName returns a reference that identifies only the kind, without a name or namespace.
func (r ref) withoutName() ref { return ref{Group: r.Group, Version: r.Version, Kind: r.Kind} }
