package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gorilla/mux"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// longestID bounds the IDs and regions in a path, in bytes. The IDs of an instance and a binding together form
// a key of the database, and PostgreSQL limits the size of an index entry.
const longestID = 255

// request is a request for an instance or a binding whose parts have been read.
type request struct {
	*http.Request

	// instanceID and bindingID come from the path. bindingID is empty in requests for an instance.
	instanceID, bindingID string
	query                 url.Values
	// body is the body of a PUT, PATCH or POST, nil for other methods.
	body *body
}

// read returns the endpoint with its request read. Malformed requests fail before the endpoint runs.
func (a *api) read(endpoint func(request) (httpserver.Response, error)) httpserver.Endpoint {
	return func(r *http.Request) (httpserver.Response, error) {
		parsed, err := readRequest(r)
		if err != nil {
			return httpserver.Response{}, err
		}

		a.notePlan(r.Context(), parsed.planID())

		return endpoint(parsed)
	}
}

// readRequest reads the parts of a request: first the IDs in the path, then the query, then the body. The first
// malformed part is the error.
func readRequest(r *http.Request) (request, error) {
	parsed := request{Request: r}

	var err error
	if parsed.instanceID, err = instanceID(r); err != nil {
		return parsed, err
	}

	if _, named := mux.Vars(r)["binding_id"]; named {
		if parsed.bindingID, err = segment(r, "binding_id"); err != nil {
			return parsed, err
		}

		httpserver.Note(r.Context(), logging.BindingID, parsed.bindingID)
	}

	if parsed.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return parsed, invalid("The query is malformed.")
	}

	switch r.Method {
	case http.MethodDelete:
		for _, name := range []string{"service_id", "plan_id"} {
			if parsed.query.Get(name) == "" {
				return parsed, invalid(name + " is missing in the query.")
			}
		}
	case http.MethodPut, http.MethodPatch, http.MethodPost:
		parsed.body, err = readBody(r)
	}

	return parsed, err
}

// instanceID returns the ID of the instance in the path, and adds it to the log line of the request.
func instanceID(r *http.Request) (string, error) {
	id, err := segment(r, "instance_id")
	if err == nil {
		httpserver.Note(r.Context(), logging.InstanceID, id)
	}

	return id, err
}

// planID returns the plan that the request names in its query or body, unchecked, or an empty text.
func (r request) planID() string {
	var planID string
	if r.body != nil {
		_ = decode(r.body.fields["plan_id"], &planID) // the endpoint rejects another type
	}

	return cmp.Or(planID, r.query.Get("plan_id"))
}

// notePlan sets the label of the plan in the metrics of the request. Clients choose the ID, so only plans of the catalog become labels.
func (a *api) notePlan(ctx context.Context, planID string) {
	if plan, known := a.Catalog.ByID(planID); known {
		httpserver.NotePlan(ctx, plan.Name)
	}
}

// acceptsIncomplete reports whether the platform accepts an asynchronous answer.
func (r request) acceptsIncomplete() bool { return r.query.Get("accepts_incomplete") == "true" }

// region returns the platform region in the path, or the default one.
func (a *api) region(r *http.Request) (string, error) {
	if _, named := mux.Vars(r)["region"]; !named {
		return a.DefaultRegion, nil
	}

	return segment(r, "region")
}

// segment returns a decoded part of the path: `a%2Db` is the same as `a-b`.
func segment(r *http.Request, name string) (string, error) {
	value, ok := unescapeID(mux.Vars(r)[name])
	if !ok || strings.Contains(value, environment.BindingPath) {
		return "", invalid(fmt.Sprintf("The %s must have 1 to %d bytes and must not contain control characters or %s.",
			name, longestID, environment.BindingPath))
	}

	return value, nil
}

// unescapeID decodes an ID in a path. It returns an empty text and false if the ID is invalid.
func unescapeID(escaped string) (string, bool) {
	id, err := url.PathUnescape(escaped)
	if err != nil || !printable(id) || len(id) > longestID {
		return "", false
	}

	return id, true
}

// printable reports whether a text can be stored and shown: it is valid UTF-8 without control characters.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(char rune) bool { return unicode.IsControl(char) || char == utf8.RuneError })
}

// longestLabel bounds the names and IDs that platforms give to accounts, applications and people, in
// characters.
const longestLabel = 255

// body reads a JSON object of a request. Its methods return the value of a field and keep the first error in
// err, which the caller checks once at the end. Unknown fields are ignored, as the protocol demands.
//
// The fields are not decoded into a struct, because encoding/json would also accept names in other case, and
// its errors do not fit users.
type body struct {
	// fields are the undecoded fields, nil if the object is absent or null.
	fields map[string]json.RawMessage
	// within is the path of the object in errors, such as "context.", empty for the outermost object.
	within string
	err    error
}

// readBody reads the body of a request. A missing content type counts as JSON, and so does that of a form,
// because curl sends it by default.
func readBody(r *http.Request) (*body, error) {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		media, _, err := mime.ParseMediaType(kind)
		if err != nil || media != "application/json" && media != "application/x-www-form-urlencoded" {
			return nil, invalid(fmt.Sprintf("The body must be application/json, not %q.", kind))
		}
	}

	content, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, unreadableBody(err)
	}

	object := &body{}
	if err := json.Unmarshal(content, &object.fields); err != nil || object.fields == nil {
		return nil, invalid("The body must be one JSON object.")
	}

	return object, nil
}

// unreadableBody returns the error for a body that did not arrive: 413 beyond the limit, 408 if the client stopped
// sending, and 400 for a body that is shorter than declared or has a malformed chunk. The cause is a network error of
// the client, so it must not reach RefusalOf, which would take it for an error of the database.
func unreadableBody(cause error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](cause); ok {
		return cause
	}

	refusal := httpserver.Refuse(http.StatusBadRequest, textShortBody)
	if errors.Is(cause, os.ErrDeadlineExceeded) {
		refusal = httpserver.Refuse(http.StatusRequestTimeout, textSlowBody)
	}

	refusal.Cause = cause

	return refusal
}

// text returns a string, empty if the field is absent or null.
func (b *body) text(field string) string {
	var text string
	if err := decode(b.fields[field], &text); err != nil {
		b.refuse(field, "must be a string.")
	}

	return text
}

// label returns a string for an indexed column, empty if the field is absent or null. PostgreSQL accepts
// neither NUL nor long texts there.
func (b *body) label(field string) string {
	text := b.text(field)
	if !printable(text) || utf8.RuneCountInString(text) > longestLabel {
		b.refuse(field, fmt.Sprintf("must have at most %d characters and no control characters.", longestLabel))
	}

	return text
}

// optional returns a string, empty if the field is absent or null, and rejects an empty one.
func (b *body) optional(field string) string {
	text := b.text(field)
	if text == "" && b.fields[field] != nil && string(b.fields[field]) != "null" {
		b.refuse(field, "must not be empty.")
	}

	return text
}

// flag returns a boolean, nil if the field is absent or null.
func (b *body) flag(field string) *bool {
	var flag *bool
	if err := decode(b.fields[field], &flag); err != nil {
		b.refuse(field, "must be true or false.")
	}

	return flag
}

// required returns a string and rejects a missing or empty one.
func (b *body) required(field string) string {
	text := b.text(field)
	if text == "" {
		b.refuse(field, "is missing.")
	}

	return text
}

// object returns an object as sent, nil if the field is absent or null.
func (b *body) object(field string) json.RawMessage {
	if b.inner(field).fields == nil {
		return nil
	}

	return b.fields[field]
}

// inner returns the body of an object, to read its fields. The body of an absent or null object has no fields.
// Errors in fields of the object are kept in the inner body, so the caller has to check both.
func (b *body) inner(field string) *body {
	inner := &body{within: b.within + field + "."}
	if err := decode(b.fields[field], &inner.fields); err != nil {
		b.refuse(field, "must be an object.")
	}

	return inner
}

// maintenanceVersion returns the version in maintenance_info, or an empty text.
func (b *body) maintenanceVersion() string {
	info := b.inner("maintenance_info")
	version := info.text("version")
	b.keep(info.err)

	return version
}

// refuse records that a field is invalid.
func (b *body) refuse(field, why string) {
	b.keep(invalid(b.within + field + " " + why))
}

// keep records the error unless there was one before.
func (b *body) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

// decode decodes a field. An absent one leaves the value as it is.
func decode(raw json.RawMessage, into any) error {
	if raw == nil {
		return nil
	}

	return json.Unmarshal(raw, into)
}

// sameObject compares JSON objects regardless of the order of their fields. A missing object equals an empty
// one. Malformed objects differ from all others.
func sameObject(one, other json.RawMessage) bool {
	first, second := map[string]any{}, map[string]any{}

	return decode(one, &first) == nil && decode(other, &second) == nil && reflect.DeepEqual(first, second)
}

// isEmpty reports whether a valid JSON object has no fields.
func isEmpty(object json.RawMessage) bool { return sameObject(object, nil) }
