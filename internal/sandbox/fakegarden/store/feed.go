package store

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// historyLength is how many changes are kept, at least, for watches that begin at an earlier resource version.
const historyLength = 4096

// change is one change of one object: old is nil if it was created, object if it was deleted.
type change struct {
	version  uint64
	resource schema.GroupVersionResource
	old      client.Object
	object   client.Object
}

// feed distributes changes to watches. It is guarded by the store.
type feed struct {
	// since is the version from which on the history is complete.
	since    uint64
	history  []change
	watchers map[*watcher]struct{}
}

func newFeed() feed {
	return feed{watchers: map[*watcher]struct{}{}}
}

func (f *feed) publish(change change) {
	if len(f.history) == 2*historyLength {
		f.since = f.history[historyLength-1].version
		f.history = slices.Clone(f.history[historyLength:])
	}
	f.history = append(f.history, change)
	for watcher := range f.watchers {
		watcher.offer(change)
	}
}

// filter chooses the objects of a watch.
type filter struct {
	resource  schema.GroupVersionResource
	namespace string
	selects   func(client.Object) bool
}

func (f filter) matches(object client.Object) bool {
	return object != nil && (f.namespace == "" || f.namespace == object.GetNamespace()) && f.selects(object)
}

// event says what a change is to someone who sees only what the filter lets through.
func (f filter) event(change change) (watch.EventType, client.Object, bool) {
	if change.resource != f.resource {
		return "", nil, false
	}
	switch before, after := f.matches(change.old), f.matches(change.object); {
	case before && after:
		return watch.Modified, change.object, true
	case after:
		return watch.Added, change.object, true
	case before:
		return watch.Deleted, change.old, true
	}
	return "", nil, false
}
