package store

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// historyLength is the minimal number of changes that are kept for watches that start at an earlier resource version. Up to twice as many are
// kept, so that dropping the older half costs little for each change.
const historyLength = 4096

// change is one change of an object: old is nil if it was created, object if it was removed.
type change struct {
	resource schema.GroupVersionResource
	old      client.Object
	object   client.Object
}

// history holds the last changes. Their resource versions are consecutive.
type history struct {
	// since is the version before the first change.
	since   uint64
	changes []change
	// waiting has the channels of the watches that wait for the next change, which closes them. Each watch creates its own: a watch in a
	// synctest bubble blocks durably only on a channel of the bubble, even if the store was created outside.
	waiting map[chan struct{}]bool
}

func newHistory(since uint64) history {
	return history{since: since, waiting: map[chan struct{}]bool{}}
}

// publish appends a change to the history and wakes the waiting watches. The caller holds mu.
func (s *Store) publish(change change) {
	s.version++
	h := &s.history
	if len(h.changes) == 2*historyLength {
		h.since += historyLength
		h.changes = slices.Clone(h.changes[historyLength:])
	}
	h.changes = append(h.changes, change)
	for extended := range h.waiting {
		close(extended)
	}
	clear(h.waiting)
}

// after returns the changes after a version. It fails with 410 Gone if the history no longer contains the version, or if the version is not
// from this store. If there are no changes, it registers the channel, which the next change closes.
func (s *Store) after(version uint64, extended chan struct{}) ([]change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.history.since || version > s.version {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("the changes since resource version %d are no longer available", version))
	}
	if version == s.version && extended != nil {
		s.history.waiting[extended] = true
	}
	return s.history.changes[version-s.history.since:], nil
}

// forget removes the channel of a watch that was stopped while it waited.
func (s *Store) forget(extended chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.history.waiting, extended)
}

// Watch implements testing.ObjectTracker. As on an API server, a watch starts after the resource version of the options or, without one,
// with all objects. It fails with 410 Gone if the changes since the version are no longer available. A slow reader delays nobody and misses
// nothing, unless it falls behind by more than the history: its watch then ends with 410 Gone.
func (s *Store) Watch(resource schema.GroupVersionResource, namespace string, options ...metav1.ListOptions) (watch.Interface, error) {
	wanted := only(options)
	selects, err := selector(namespace, wanted)
	if err != nil {
		return nil, err
	}
	w := watcher{store: s, resource: resource, selects: selects, events: make(chan watch.Event)}
	w.ProxyWatcher = watch.NewProxyWatcher(w.events)
	var present []watch.Event
	bookmark := wanted.SendInitialEvents != nil && *wanted.SendInitialEvents
	if bookmark || wanted.ResourceVersion == "" || wanted.ResourceVersion == "0" {
		present, w.seen, err = s.present(w, namespace, bookmark)
	} else if w.seen, err = strconv.ParseUint(wanted.ResourceVersion, 10, 64); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q", wanted.ResourceVersion))
	} else {
		_, err = s.after(w.seen, nil)
	}
	if err != nil {
		return nil, err
	}
	go w.run(present)
	return w, nil
}

// present returns an event for each object that a watch selects, and the version of this state. A requested bookmark follows: it marks the end
// of the initial events for informers.
func (s *Store) present(w watcher, namespace string, bookmark bool) ([]watch.Event, uint64, error) {
	kind, err := s.kindOf(w.resource)
	if err != nil {
		return nil, 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	list, err := s.List(w.resource, kind, namespace)
	if err != nil {
		return nil, 0, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, 0, fmt.Errorf("listing the objects of a watch: %w", err)
	}
	var events []watch.Event
	for _, item := range items {
		if object, ok := item.(client.Object); ok && w.selects(object) {
			object.SetManagedFields(nil)
			events = append(events, watch.Event{Type: watch.Added, Object: object})
		}
	}
	if !bookmark {
		return events, s.version, nil
	}
	empty, err := s.scheme.New(kind)
	if err != nil {
		return nil, 0, fmt.Errorf("creating a bookmark: %w", err)
	}
	mark, err := asObject(empty)
	if err != nil {
		return nil, 0, err
	}
	mark.SetResourceVersion(formatVersion(s.version))
	mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return append(events, watch.Event{Type: watch.Bookmark, Object: mark}), s.version, nil
}

// watcher is one watch. It reads the history of the store at its own pace.
type watcher struct {
	*watch.ProxyWatcher

	store    *Store
	resource schema.GroupVersionResource
	selects  func(client.Object) bool
	events   chan watch.Event
	// seen is the version up to which the changes were sent.
	seen uint64
}

// run sends the initial events and then those of the changes, until the watch is stopped. It closes the channel at its end.
func (w watcher) run(events []watch.Event) {
	defer close(w.events)
	for {
		for _, event := range events {
			select {
			case w.events <- event:
			case <-w.StopChan():
				return
			}
		}
		extended := make(chan struct{})
		changes, err := w.store.after(w.seen, extended)
		if err != nil {
			w.fail(err)
			return
		}
		events = events[:0]
		for _, change := range changes {
			w.seen++
			if event, ok := w.event(change); ok {
				events = append(events, event)
			}
		}
		if len(changes) > 0 {
			continue
		}
		select {
		case <-extended:
		case <-w.StopChan():
			w.store.forget(extended)
			return
		}
	}
}

// fail sends the error as the last event.
func (w watcher) fail(err error) {
	if expired, ok := errors.AsType[*apierrors.StatusError](err); ok {
		select {
		case w.events <- watch.Event{Type: watch.Error, Object: &expired.ErrStatus}:
		case <-w.StopChan():
		}
	}
}

// event returns the event of a change for the selection: an object that starts to match is added, one that no longer matches is deleted. It
// returns false if the change does not concern the selection.
func (w watcher) event(change change) (watch.Event, bool) {
	if change.resource != w.resource {
		return watch.Event{}, false
	}
	before := change.old != nil && w.selects(change.old)
	after := change.object != nil && w.selects(change.object)
	kind, object := watch.Modified, change.object
	switch {
	case !before && !after:
		return watch.Event{}, false
	case !before:
		kind = watch.Added
	case !after:
		kind, object = watch.Deleted, change.old
	}
	copied, err := asObject(object.DeepCopyObject())
	if err != nil {
		return watch.Event{}, false
	}
	copied.SetManagedFields(nil)
	copied.SetResourceVersion(formatVersion(w.seen))
	return watch.Event{Type: kind, Object: copied}, true
}

// selector returns the selection by the namespace, all if it is empty, and by the selectors of the options. It supports the
// fields metadata.name and metadata.namespace only.
func selector(namespace string, options metav1.ListOptions) (func(client.Object) bool, error) {
	byLabel, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, requirement := range byField.Requirements() {
		if requirement.Field != "metadata.name" && requirement.Field != "metadata.namespace" {
			return nil, apierrors.NewBadRequest("field label not supported: " + requirement.Field)
		}
	}
	return func(object client.Object) bool {
		names := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
		return (namespace == "" || namespace == object.GetNamespace()) &&
			byLabel.Matches(labels.Set(object.GetLabels())) && byField.Matches(names)
	}, nil
}
