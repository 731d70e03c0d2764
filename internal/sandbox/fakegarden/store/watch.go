package store

import (
	"fmt"
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

// Watch implements testing.ObjectTracker. Like a watch on an API server it begins after the resource version of the options, or, without
// one, with all objects; it is told to begin anew (410 Gone) if it asks for changes that are forgotten. Nothing is lost however slow
// the watcher is.
func (s *Store) Watch(resource schema.GroupVersionResource, namespace string, options ...metav1.ListOptions) (watch.Interface, error) {
	var wanted metav1.ListOptions
	if len(options) > 0 {
		wanted = options[0]
	}
	selects, err := selection(wanted)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := newWatcher(filter{resource: resource, namespace: namespace, selects: selects})
	version := wanted.ResourceVersion
	if initial := wanted.SendInitialEvents; version == "" || version == "0" || initial != nil && *initial {
		err = s.offerAll(w, initial != nil && *initial)
	} else {
		err = s.offerSince(w, version)
	}
	if err != nil {
		return nil, err
	}
	s.feed.watchers[w] = struct{}{}
	w.unsubscribe = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.feed.watchers, w)
	}
	go w.deliver()
	return w, nil
}

// offerAll lets a watch begin with the objects that there are, and with a bookmark behind them if it asks for one.
func (s *Store) offerAll(w *watcher, bookmark bool) error {
	kind, err := s.kindOf(w.filter.resource)
	if err != nil {
		return err
	}
	list, err := s.objects.List(w.filter.resource, kind, w.filter.namespace)
	if err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("list what there is to watch: %w", err)
	}
	for _, item := range items {
		if object, ok := item.(client.Object); ok {
			w.offer(change{resource: w.filter.resource, object: object})
		}
	}
	if !bookmark {
		return nil
	}
	created, err := s.scheme.New(kind)
	if err != nil {
		return fmt.Errorf("make a bookmark: %w", err)
	}
	if mark, ok := created.(client.Object); ok {
		mark.SetResourceVersion(strconv.FormatUint(s.version, 10))
		mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		w.enqueue(watch.Event{Type: watch.Bookmark, Object: mark})
	}
	return nil
}

func (s *Store) offerSince(w *watcher, version string) error {
	since, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q", version))
	}
	if since < s.feed.since || since > s.version {
		return apierrors.NewResourceExpired(fmt.Sprintf("the changes since resource version %s are not known any more", version))
	}
	for _, change := range s.feed.history {
		if change.version > since {
			w.offer(change)
		}
	}
	return nil
}

func (s *Store) kindOf(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	for name := range s.scheme.KnownTypes(resource.GroupVersion()) {
		kind := resource.GroupVersion().WithKind(name)
		if guess, _ := meta.UnsafeGuessKindToResource(kind); guess == resource {
			return kind, nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("no kind is known for %s", resource)
}

// selection returns what the selectors of the options choose. Fields other than name and namespace cannot be selected by.
func selection(options metav1.ListOptions) (func(client.Object) bool, error) {
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
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", requirement.Field))
		}
	}
	return func(object client.Object) bool {
		names := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
		return byLabel.Matches(labels.Set(object.GetLabels())) && byField.Matches(names)
	}, nil
}
