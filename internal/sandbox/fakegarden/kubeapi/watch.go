package kubeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// historyLength is the minimum number of changes that are retained for watches that start at an earlier resource version. The
// server retains up to twice as many, so that it can drop old changes in large blocks.
const historyLength = 4096

// change is one change of an object. old is empty if the object was created, and object is empty if it was removed.
type change struct {
	resource *resource
	old      object
	object   object
}

// history contains the latest changes. Their resource versions are consecutive.
type history struct {
	// since is the resource version before the first change in changes.
	since   uint64
	changes []change
	// waiting contains a channel for each watch that waits for the next change; publish closes them all. Each watch creates its
	// own channel: in a synctest bubble, a watch blocks durably only on a channel from the same bubble, and the server may have been
	// opened outside the bubble.
	waiting map[chan struct{}]bool
}

// publish appends a change to the history and wakes waiting watches. The caller must hold mu.
func (s *Server) publish(change change) {
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

// after returns the changes since a version. It returns 410 Gone if the history no longer contains the version, or if the version
// is from another process. If there are no changes and extended is not nil, the next change closes extended.
func (s *Server) after(version uint64, extended chan struct{}) ([]change, error) {
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

// forget removes the channel of a watch that ended while it waited.
func (s *Server) forget(extended chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.history.waiting, extended)
}

// watch streams changes of the selected objects until the client disconnects. It starts at the resource version of the request.
// Without a version, it first sends all objects. If the changes since the version are no longer available, it returns 410 Gone. A
// slow client does not delay other clients and misses no change; if it falls behind by more than the history, its watch ends with
// 410 Gone. watch returns only errors that occur before the first event.
func (s *Server) watch(w http.ResponseWriter, r *request) error {
	selects, err := r.selection()
	if err != nil {
		return err
	}
	var seen uint64
	var events []event
	version, bookmark := r.query.Get("resourceVersion"), r.query.Get("sendInitialEvents") == "true"
	if bookmark || version == "" || version == "0" {
		events, seen = s.initialEvents(r.resource, selects, bookmark)
	} else if seen, err = strconv.ParseUint(version, 10, 64); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q", version))
	}
	if _, err := s.after(seen, nil); err != nil {
		return err
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	stream := eventStream{ResponseController: http.NewResponseController(w), encoder: json.NewEncoder(w)}
	for stream.send(events) == nil {
		extended := make(chan struct{})
		changes, err := s.after(seen, extended)
		if err != nil {
			_ = stream.send([]event{{watch.Error, statusOf(err)}})
			return nil
		}
		events = nil
		for _, change := range changes {
			seen++
			if event, ok := change.event(r.resource, selects, seen); ok {
				events = append(events, event)
			}
		}
		if len(changes) > 0 {
			continue
		}
		select {
		case <-extended:
		case <-r.Context().Done():
			s.forget(extended)
			return nil
		}
	}
	return nil
}

// event is a watch event as the Kubernetes API encodes it. Its object is a stored object, a bookmark or a Status.
type event struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

// eventStream writes events to a client, one JSON document after the other. Each watch has its own stream, which only one
// goroutine may use.
type eventStream struct {
	*http.ResponseController

	encoder *json.Encoder
}

// send writes and flushes events. Without events it flushes only the header, which acknowledges the watch. It fails if the client
// has disconnected.
func (s eventStream) send(events []event) error {
	for _, event := range events {
		if err := s.encoder.Encode(event); err != nil {
			return err
		}
	}
	return s.Flush()
}

// initialEvents returns an event for each selected object, and the resource version to which they belong. If bookmark is true, a
// bookmark follows, which marks the end of the initial events for informers.
func (s *Server) initialEvents(resource *resource, selects func(client.Object) bool, bookmark bool) ([]event, uint64) {
	objects, version := s.selected(resource, selects)
	var events []event
	for _, object := range objects {
		events = append(events, event{watch.Added, object})
	}
	if bookmark {
		mark := &metav1.PartialObjectMetadata{}
		mark.SetGroupVersionKind(resource.GroupVersionKind)
		mark.SetResourceVersion(formatVersion(version))
		mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		events = append(events, event{watch.Bookmark, mark})
	}
	return events, version
}

// event returns the watch event for a change. An object that starts to match the selection is reported as added; an object that
// stops matching it is reported as deleted. event returns false if neither the old nor the new object matches.
func (c change) event(of *resource, selects func(client.Object) bool, version uint64) (event, bool) {
	before := c.resource == of && c.old.Object != nil && selects(c.old)
	after := c.resource == of && c.object.Object != nil && selects(c.object)
	switch {
	case before && after:
		return event{watch.Modified, c.object}, true
	case after:
		return event{watch.Added, c.object}, true
	case before:
		deleted := copyOf(c.old)
		deleted.SetManagedFields(nil)
		deleted.SetResourceVersion(formatVersion(version))
		return event{watch.Deleted, deleted}, true
	}
	return event{}, false
}
