package operator

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/broker/events"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage/eventlog"
)

const (
	// mediaEvents is the content type of server-sent events.
	mediaEvents = "text/event-stream"
	// lastEventID is the header with which clients resume a stream.
	lastEventID = "Last-Event-ID"
)

// ListEvents returns a page of events, or a stream if the client accepts one.
func (a *API) ListEvents(r *http.Request, query operatorserver.Query) (httpserver.Response, error) {
	types, err := eventTypes(query.Get("types"))
	if err != nil {
		return httpserver.Response{}, err
	}

	filter := eventlog.Filter{Types: types, InstanceID: query.Get("instance_id"), Account: query.Get("account")}

	// HEAD is the only other method of this endpoint.
	if streams := r.Method == http.MethodGet && acceptsEvents(r.Header); !streams {
		after, err := position("after", query.Get("after"))
		if err != nil {
			return httpserver.Response{}, err
		}

		return a.listEvents(r.Context(), filter, after, query.Page.Size)
	}

	name, given := lastEventID, r.Header.Get(lastEventID)
	if given == "" {
		name, given = "after", query.Get("after")
	}

	after, err := position(name, given)
	if err != nil {
		return httpserver.Response{}, err
	}

	return a.EventStreams.Response(r.Context(), filter, after)
}

// listEvents returns a page of events. If after is negative, the page starts with the oldest event.
func (a *API) listEvents(ctx context.Context, filter eventlog.Filter, after int64, size int) (httpserver.Response, error) {
	head, err := a.EventLog.Head(ctx)
	if err != nil {
		return httpserver.Response{}, err
	}

	if after < 0 {
		after = head.Removed
	}

	if err := events.Check(head, after); err != nil {
		return httpserver.Response{}, err
	}

	found, last, err := events.Read(ctx, a.EventLog, filter, after, size)
	if err == nil && last < head.Position {
		last, err = a.skipErased(ctx, last, head)
	}

	if err != nil {
		return httpserver.Response{}, err
	}

	list := operatorapi.CloudEventList{
		Data: make([]operatorapi.CloudEvent, 0, len(found)), Count: len(found), After: last, Last: head.Position, More: last < head.Position,
	}
	for _, event := range found {
		list.Data = append(list.Data, events.CloudEvent(event, a.PublicURL))
	}

	return httpserver.OK(list), nil
}

// skipErased returns the position from which the next page continues after a page that ends at last. If all later events up to the head
// have been erased, it returns the position of the head. Otherwise, a client that reads all pages would never reach the end.
func (a *API) skipErased(ctx context.Context, last int64, head eventlog.Head) (int64, error) {
	_, next, err := a.EventLog.Read(ctx, eventlog.Filter{}, last, 1)
	if err != nil || next > last {
		return last, err
	}

	return head.Position, nil
}

// eventTypes parses a comma-separated list of event types, with or without events.TypePrefix.
func eventTypes(text string) ([]eventlog.Type, error) {
	if text == "" {
		return nil, nil
	}

	var types []eventlog.Type

	for name := range strings.SplitSeq(text, ",") {
		given := eventlog.Type(strings.TrimPrefix(strings.TrimSpace(name), events.TypePrefix))
		if !slices.Contains(eventlog.Types(), given) {
			known := make([]string, 0, len(eventlog.Types()))
			for _, each := range eventlog.Types() {
				known = append(known, string(each))
			}

			return nil, operatorserver.Invalid(fmt.Sprintf("The type %q is unknown. Use one or more of: %s.", given, strings.Join(known, ", ")))
		}

		types = append(types, given)
	}

	return types, nil
}

// position parses the position of an event. It returns -1 if the text is empty. name is the parameter or header that an error
// names.
func position(name, text string) (int64, error) {
	if text == "" {
		return -1, nil
	}

	given, err := strconv.ParseInt(text, 10, 64)
	if err != nil || given < 0 {
		return 0, operatorserver.Invalid(name + " must be the position of an event, a non-negative number.")
	}

	return given, nil
}

// acceptsEvents reports whether the client accepts a stream of events.
func acceptsEvents(header http.Header) bool {
	for _, accepted := range header.Values("Accept") {
		for each := range strings.SplitSeq(accepted, ",") {
			if media, _, err := mime.ParseMediaType(each); err == nil && media == mediaEvents {
				return true
			}
		}
	}

	return false
}
