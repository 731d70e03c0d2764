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

// historyLength is the minimal number of changes that are kept for watches that start at an earlier resource version. Up to twice as many are
// kept, so that dropping the older half costs little for each change.
const historyLength = 4096

// change is one change of an object: old is none if it was created, object is none if it was removed.
type change struct {
	resource *resource
	old      object
	object   object
}

// history holds the last changes. Their resource versions are consecutive.
type history struct {
	// since is the version before the first change.
	since   uint64
	changes []change
	// waiting has the channels of the watches that wait for the next change, which closes them. Each watch creates its own: a watch in a
	// synctest bubble blocks durably only on a channel of the bubble, even if the server was opened outside.
	waiting map[chan struct{}]bool
}

// publish appends a change to the history and wakes the waiting watches. The caller holds mu.
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

// after returns the changes after a version. It fails with 410 Gone if the history no longer contains the version, or if the version is not
// from this process. If there are no changes, it registers the channel, which the next change closes.
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

// forget removes the channel of a watch that has ended while it waited.
func (s *Server) forget(extended chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.history.waiting, extended)
}

// watch streams the changes of the selected objects until the client disconnects. A watch starts after the resource version of the request or,
// without one, with all objects. It fails with 410 Gone if the changes since the version are no longer available. A slow client delays no other
// client and misses no change, unless it falls behind by more than the history: its watch then ends with 410 Gone. The returned error is one
// from before the first event.
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

// event is an event of a watch in the form of the API: its object is an object, a bookmark or a Status.
type event struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

// eventStream writes events to a client, one JSON document after the other. A stream belongs to one watch and one goroutine.
type eventStream struct {
	*http.ResponseController

	encoder *json.Encoder
}

// send writes and flushes events. Without events it flushes the header, which acknowledges the watch. It fails if the client has disconnected.
func (s eventStream) send(events []event) error {
	for _, event := range events {
		if err := s.encoder.Encode(event); err != nil {
			return err
		}
	}
	return s.Flush()
}

// initialEvents returns an event for each selected object, and the version of this state. A requested bookmark follows: it marks the end of the
// initial events for informers.
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

// event returns the event of a change at a version: an object that starts to match the selection is added, one that no longer matches is
// deleted. It returns false if the change does not concern the selection.
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
