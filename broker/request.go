package broker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// request is a request for an instance or a binding, after its path, query and body were read.
type request struct {
	*http.Request

	// instanceID and bindingID come from the path. bindingID is empty in requests for an instance.
	instanceID, bindingID string
	query                 url.Values
	// body is the body of a PUT, PATCH or POST request, and nil for other methods.
	body *body
}

// read adapts an endpoint to httpserver. It reads the request and calls the endpoint only if the request is well
// formed.
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

// readRequest reads the IDs in the path, then the query, then the body. It returns an error for the first malformed
// part.
func readRequest(r *http.Request) (request, error) {
	parsed := request{Request: r}

	var err error
	if parsed.instanceID, err = instanceID(r); err != nil {
		return parsed, err
	}

	if _, named := mux.Vars(r)["binding_id"]; named {
		if parsed.bindingID, err = resourceID(r, "binding_id"); err != nil {
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
				return parsed, invalid(name + " is missing from the query.")
			}
		}
	case http.MethodPut, http.MethodPatch, http.MethodPost:
		parsed.body, err = readBody(r)
	}

	return parsed, err
}

// instanceID returns the instance ID in the path, and adds it to the log line of the request.
func instanceID(r *http.Request) (string, error) {
	id, err := resourceID(r, "instance_id")
	if err == nil {
		httpserver.Note(r.Context(), logging.InstanceID, id)
	}

	return id, err
}

// planID returns the plan ID in the query or in the body, or an empty string. The ID is not checked.
func (r request) planID() string {
	var planID string
	if r.body != nil {
		_ = decode(r.body.fields["plan_id"], &planID) // the endpoint rejects other types
	}

	return cmp.Or(planID, r.query.Get("plan_id"))
}

// key returns the key under which operations on the requested resource are stored: a BindingKey if the request names a
// binding, and otherwise the instance ID.
func (r request) key() string {
	if r.bindingID != "" {
		return environment.BindingKey(r.instanceID, r.bindingID)
	}

	return r.instanceID
}

// notePlan sets the plan label in the metrics of the request. Clients choose the ID, so only plans in the catalog become labels.
func (a *api) notePlan(ctx context.Context, planID string) {
	if plan, known := a.Catalog.ByID(planID); known {
		httpserver.NotePlan(ctx, plan.Name)
	}
}

// acceptsIncomplete reports whether the platform accepts an asynchronous response.
func (r request) acceptsIncomplete() bool { return r.query.Get("accepts_incomplete") == "true" }

// region returns the platform region in the path, or the default region.
func (a *api) region(r *http.Request) (string, error) {
	if _, named := mux.Vars(r)["region"]; !named {
		return a.DefaultRegion, nil
	}

	return segment(r, "region")
}

// resourceID returns an ID in the path. IDs of new instances and bindings must consist of visible characters. Earlier releases
// also accepted invisible ones, so requests for existing resources may have such IDs.
func resourceID(r *http.Request, name string) (string, error) {
	creates := r.Method == http.MethodPut || r.Method == http.MethodPost
	if _, ofBinding := mux.Vars(r)["binding_id"]; ofBinding && name != "binding_id" {
		creates = false // requests for a binding do not create the instance
	}

	id, ok := unescapeID(mux.Vars(r)[name])
	if ok && !creates && !strings.Contains(id, environment.BindingPath) {
		return id, nil
	}

	if _, _, is := environment.LeftoverOf(id); is && creates {
		return "", invalid(fmt.Sprintf("The %s must not contain %s.", name, environment.LeftoverPath))
	}

	if _, is := environment.OrchestrationOf(id); is && creates {
		return "", invalid(fmt.Sprintf("The %s must not begin with %s.", name, environment.OrchestrationPath))
	}

	return segment(r, name)
}

// segment returns the decoded value of a variable in the path, such as a-b for a%2Db. It rejects values that are empty
// or too long, and values with invisible characters or environment.BindingPath.
func segment(r *http.Request, name string) (string, error) {
	value, ok := unescapeID(mux.Vars(r)[name])
	if !ok || !bounds.Visible(value) || strings.Contains(value, environment.BindingPath) {
		return "", invalid(fmt.Sprintf("The %s must have 1 to %d bytes and must not contain control characters, invisible characters or %s.",
			name, bounds.ID, environment.BindingPath))
	}

	return value, nil
}

// unescapeID decodes an ID in a path. It returns "" and false if the ID is too long, is not UTF-8 or has control characters. No
// release has ever accepted such an ID.
func unescapeID(escaped string) (string, bool) {
	id, err := url.PathUnescape(escaped)
	if err != nil || len(id) > bounds.ID || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return "", false
	}

	return id, true
}

const (
	// longestLabel is the maximum length of names and IDs of accounts, applications and users, in characters.
	longestLabel = 255
	// largestContext is the maximum size of a context, in bytes. It is stored with the instance.
	largestContext = 64 << 10
)

// body reads the fields of a JSON object in a request. Each method returns the value of a field and records the
// first error in err, so the caller checks err once at the end. Unknown fields are ignored, as the protocol
// demands.
//
// The fields are not decoded into a struct: encoding/json ignores the case of field names, and its errors are not
// suitable for users.
type body struct {
	// fields contains the undecoded value of each field. It is nil if the object is absent or null.
	fields map[string]json.RawMessage
	// objects caches the fields of nested objects that inner has decoded, keyed by the name of the object.
	objects map[string]map[string]json.RawMessage
	// within is the prefix of field names in error messages, such as "context.". It is empty for the outermost object.
	within string
	err    error
}

// readBody reads the JSON object in the body of a request. It rejects an object that exceeds the limits of package bounds. It
// also accepts requests without a content type, and requests with application/x-www-form-urlencoded, curl's default content type.
func readBody(r *http.Request) (*body, error) {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		media, _, err := mime.ParseMediaType(kind)
		if err != nil || media != "application/json" && media != "application/x-www-form-urlencoded" {
			return nil, invalid(fmt.Sprintf("The body must be application/json, not %q.", kind))
		}
	}

	var content bytes.Buffer

	content.Grow(int(min(max(r.ContentLength, 0), largestBody)) + bytes.MinRead) // without a length, the buffer grows while it is read

	if _, err := content.ReadFrom(r.Body); err != nil {
		return nil, unreadableBody(err)
	}

	if err := bounds.JSON("The body", content.Bytes()); err != nil {
		return nil, invalid(err.Error() + ".")
	}

	object := &body{}
	if err := json.Unmarshal(content.Bytes(), &object.fields); err != nil || object.fields == nil {
		return nil, invalid("The body must be one JSON object.")
	}

	return object, nil
}

// unreadableBody returns the error for a body that was not received completely: 413 if the body is too large, 408
// if the client stopped sending, and 400 if the body is shorter than declared or a chunk is malformed. Without this
// conversion, RefusalOf would report the network error as an error of the database.
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

// text returns the string in a field, or an empty string if the field is absent or null.
func (b *body) text(field string) string {
	var text string
	if err := decode(b.fields[field], &text); err != nil {
		b.refuse(field, "must be a string.")
	}

	return text
}

// label is like text, but for values in indexed columns. It rejects invisible characters and long strings: PostgreSQL cannot
// store NUL, and limits the size of an index entry.
func (b *body) label(field string) string {
	text := b.text(field)
	if utf8.RuneCountInString(text) > longestLabel || !bounds.Visible(text) {
		b.refuse(field, fmt.Sprintf("must have at most %d characters and must not contain control characters or invisible characters.", longestLabel))
	}

	return text
}

// optional is like text, but rejects a field that is present and contains an empty string.
func (b *body) optional(field string) string {
	text := b.text(field)
	if text == "" && b.fields[field] != nil && string(b.fields[field]) != "null" {
		b.refuse(field, "must not be empty.")
	}

	return text
}

// flag returns the boolean in a field, or nil if the field is absent or null.
func (b *body) flag(field string) *bool {
	var flag *bool
	if err := decode(b.fields[field], &flag); err != nil {
		b.refuse(field, "must be true or false.")
	}

	return flag
}

// required is like text, but rejects a field that is missing or empty.
func (b *body) required(field string) string {
	text := b.text(field)
	if text == "" {
		b.refuse(field, "is missing.")
	}

	return text
}

// object returns the object in a field as it was sent, or nil if the field is absent or null.
func (b *body) object(field string) json.RawMessage {
	if b.inner(field).fields == nil {
		return nil
	}

	return b.fields[field]
}

// context returns the context object as it was sent, or nil if it is absent or null. It rejects an object of more than
// largestContext bytes.
func (b *body) context() json.RawMessage {
	context := b.object("context")
	if len(context) > largestContext {
		b.refuse("context", fmt.Sprintf("must have at most %d bytes.", largestContext))
	}

	return context
}

// inner returns a body for the fields of a nested object. If the object is absent or null, the body has no fields. The
// inner body records errors separately, so the caller has to check the errors of both bodies. Each object is decoded only
// once.
func (b *body) inner(field string) *body {
	fields, decoded := b.objects[field]
	if !decoded {
		if err := decode(b.fields[field], &fields); err != nil {
			b.refuse(field, "must be an object.")
		}

		if b.objects == nil {
			b.objects = map[string]map[string]json.RawMessage{}
		}

		b.objects[field] = fields
	}

	return &body{fields: fields, within: b.within + field + "."}
}

// maintenanceVersion returns the version in maintenance_info, or an empty string.
func (b *body) maintenanceVersion() string {
	info := b.inner("maintenance_info")
	version := info.text("version")
	b.keep(info.err)

	return version
}

// refuse records that a field is invalid. why completes a sentence that starts with the name of the field.
func (b *body) refuse(field, why string) {
	b.keep(invalid(b.within + field + " " + why))
}

// keep records the error, unless an earlier error was recorded.
func (b *body) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

// decode decodes the JSON value of a field into the variable that into points to. If the field is absent, the variable stays
// unchanged.
func decode(raw json.RawMessage, into any) error {
	if raw == nil {
		return nil
	}

	return json.Unmarshal(raw, into)
}

// sameObject reports whether two JSON objects are equal, regardless of the order of their fields. A missing object
// equals an empty one. A malformed object equals no other.
func sameObject(one, other json.RawMessage) bool {
	first, second := map[string]any{}, map[string]any{}

	return decode(one, &first) == nil && decode(other, &second) == nil && reflect.DeepEqual(first, second)
}

// isEmpty reports whether a valid JSON object has no fields.
func isEmpty(object json.RawMessage) bool { return sameObject(object, nil) }
