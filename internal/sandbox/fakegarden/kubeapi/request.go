package kubeapi

import (
	"cmp"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxBody is the maximum size of a request body in bytes.
	maxBody = 3 << 20

	subresourceStatus = "status"
)

// request is a request for objects of one resource: for one object if key has a name, otherwise for the objects of a namespace or
// of all namespaces.
type request struct {
	*http.Request

	query    url.Values
	resource *resource
	key      types.NamespacedName
	// verb is the API verb, such as list, or empty if the server does not support the request.
	verb string
	// subresource is the last path segment of a request for a subresource, or empty.
	subresource string
}

// ServeHTTP implements http.Handler. The paths are the same as on a real API server. The caller must have authenticated the user.
// Requests for the version, health and discovery documents need no authorization. A watch writes its own response, because the
// response is a stream.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if document, ok := s.document(r); ok {
		reply(w, http.StatusOK, document)
		return
	}
	request, err := s.parse(r)
	if err == nil && s.options.Authorize != nil {
		err = s.options.Authorize(r, request.resource.Kind)
	}
	var code int
	var body any
	switch {
	case err != nil:
	case request.verb == "watch":
		if err = s.watch(w, request); err == nil {
			return
		}
	default:
		code, body, err = s.answer(request)
	}
	if err != nil {
		Refuse(w, err)
		return
	}
	reply(w, code, body)
}

// parse determines the resource and the object of a request from the path: /api/<version> or /apis/<group>/<version>, followed by
// [/namespaces/<namespace>]/<resource>[/<name>[/<subresource>]]. It does not read the body, so that Authorize can reject the
// request first. The path of a namespaced object must contain the namespace; only lists and watches may cover all namespaces.
func (s *Server) parse(r *http.Request) (*request, error) {
	var group schema.GroupVersion
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		group.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group.Group, group.Version, parts = parts[1], parts[2], parts[3:]
	}
	parsed := &request{Request: r, query: r.URL.Query()}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parsed.key.Namespace, parts = parts[1], parts[2:]
	}
	parsed.resource = s.resources[group.WithResource(parts[0])]
	if len(parts) > 1 {
		parsed.key.Name = parts[1]
	}
	if len(parts) > 2 {
		parsed.subresource = parts[2]
	}
	parsed.verb = parsed.findVerb()
	everywhere := parsed.key.Namespace == "" && (parsed.verb == "list" || parsed.verb == "watch")
	if parsed.resource == nil || len(parts) > 3 || parsed.resource.Namespaced != (parsed.key.Namespace != "") && !everywhere {
		return nil, NotServed("the server does not serve this path")
	}
	return parsed, nil
}

// findVerb returns the API verb for the HTTP method: for one object if the request has a name, and for a collection otherwise. It
// returns an empty string if the method is not supported.
func (r *request) findVerb() string {
	verbs := map[string]string{http.MethodGet: "list", http.MethodPost: "create"}
	switch {
	case r.key.Name != "":
		verbs = map[string]string{
			http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
		}
	case r.query.Get("watch") == "true":
		verbs[http.MethodGet] = "watch"
	}
	return verbs[r.Method]
}

// answer handles a request other than a watch and returns the status code and body of the response. Both are undefined if it
// returns an error; Refuse converts the error to a Status.
func (s *Server) answer(r *request) (int, any, error) {
	if r.subresource != "" && (r.subresource != subresourceStatus || !r.resource.Status) {
		return s.answerSubresource(r)
	}
	if (r.resource.ReadOnly || r.resource.Review) && !slices.Contains(r.resource.verbs(), r.verb) {
		return 0, nil, apierrors.NewMethodNotSupported(r.resource.plural(), r.verb)
	}
	if r.resource.Review {
		return s.answerHook(r, r.resource.plural().Resource)
	}
	switch r.verb {
	case "list":
		return s.list(r)
	case "get":
		found, err := s.existing(r.resource, r.key)
		return http.StatusOK, found, err
	case "create":
		return s.create(r)
	case "update":
		return s.update(r)
	case "patch":
		return s.patch(r)
	case "delete":
		return s.remove(r)
	}
	return 0, nil, apierrors.NewMethodNotSupported(r.resource.plural(), r.Method)
}

// answerSubresource calls the handler for a subresource. Only POST requests are supported.
func (s *Server) answerSubresource(r *request) (int, any, error) {
	plural := r.resource.plural()
	name := plural.Resource + "/" + r.subresource
	if s.options.Subresources[name] == nil || r.verb != "create" {
		return 0, nil, apierrors.NewNotFound(plural, r.subresource)
	}
	return s.answerHook(r, name)
}

// answerHook calls the handler with the given name in Options.Subresources, which must exist.
func (s *Server) answerHook(r *request, name string) (int, any, error) {
	body, err := s.options.Subresources[name](r.Context(), r.key, func(into runtime.Object) error {
		kinds, _, err := s.options.Scheme.ObjectKinds(into)
		if err != nil {
			return err
		}
		return s.read(r, kinds[0], into)
	})
	return http.StatusCreated, body, err
}

// objectList is the response to a list request.
type objectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []object `json:"items"`
}

// list returns the selected objects of a namespace, or of all namespaces if the request names none. With the limit parameter, it
// returns one page of them.
func (s *Server) list(r *request) (int, any, error) {
	selects, err := r.selection()
	if err != nil {
		return 0, nil, err
	}
	found, version := s.selected(r.resource, selects)
	found, next, err := r.page(found)
	if err != nil {
		return 0, nil, err
	}
	list := objectList{ListMeta: metav1.ListMeta{ResourceVersion: formatVersion(version), Continue: next}, Items: found}
	list.SetGroupVersionKind(r.resource.GroupVersion().WithKind(r.resource.Kind.Kind + "List"))
	return http.StatusOK, list, nil
}

// page returns the page that the limit and continue parameters select, and the token for the next page. found must be sorted by
// namespace and name. Unlike on a real API server, a page also shows changes that happened after the request for the first page.
func (r *request) page(found []object) ([]object, string, error) {
	token, err := base64.RawURLEncoding.DecodeString(r.query.Get("continue"))
	namespace, name, valid := strings.Cut(string(token), "/")
	if err != nil || len(token) > 0 && !valid {
		return nil, "", apierrors.NewBadRequest("continue key is not valid")
	}
	limit, err := strconv.Atoi(cmp.Or(r.query.Get("limit"), "0"))
	if err != nil || limit < 0 {
		return nil, "", apierrors.NewBadRequest("limit is not valid")
	}
	found = slices.DeleteFunc(found, func(each object) bool {
		return valid && cmp.Or(cmp.Compare(each.GetNamespace(), namespace), cmp.Compare(each.GetName(), name)) <= 0
	})
	if limit == 0 || len(found) <= limit {
		return found, "", nil
	}
	last := found[limit-1]
	return found[:limit], base64.RawURLEncoding.EncodeToString([]byte(last.GetNamespace() + "/" + last.GetName())), nil
}

// selection returns a function that matches the namespace and the selectors of a list or a watch. It supports only the fields
// metadata.name and metadata.namespace. As on a real API server, other fields are an error, because ignoring the filter would
// return wrong objects.
func (r *request) selection() (func(client.Object) bool, error) {
	byLabel, err := labels.Parse(r.query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(r.query.Get("fieldSelector"))
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
		return (r.key.Namespace == "" || r.key.Namespace == object.GetNamespace()) &&
			byLabel.Matches(labels.Set(object.GetLabels())) && byField.Matches(names)
	}, nil
}

// dryRun reports whether the request is a dry run, whose change is admitted but not stored.
func (r *request) dryRun() bool { return slices.Contains(r.query["dryRun"], metav1.DryRunAll) }

// body reads the request body, up to maxBody bytes. A longer body is truncated and then fails to decode.
func (r *request) body() ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, apierrors.NewBadRequest("the body cannot be read")
	}
	return body, nil
}

// read decodes the request body into an object. The body must contain an object of the wanted kind.
func (s *Server) read(r *request, wanted schema.GroupVersionKind, into runtime.Object) error {
	body, err := r.body()
	if err != nil {
		return err
	}
	return s.decode(body, wanted, into)
}

// decode decodes an object of the wanted kind, in JSON or in the protocol buffer format of typed clients. The decoder detects the
// format and ignores unknown fields. The error does not quote the body, because it could be a Secret.
func (s *Server) decode(body []byte, wanted schema.GroupVersionKind, into runtime.Object) error {
	if _, given, err := s.decoder.Decode(body, &wanted, into); err != nil || *given != wanted {
		return invalidBody(wanted)
	}
	return nil
}

// readObject decodes the object in the request body. If the path contains no name, readObject copies the name of the object to
// the key of the request.
func (s *Server) readObject(r *request) (client.Object, error) {
	object, err := s.empty(r.resource)
	if err != nil {
		return nil, err
	}
	if err := s.read(r, r.resource.GroupVersionKind, object); err != nil {
		return nil, err
	}
	if r.key.Name == "" {
		r.key.Name = object.GetName()
	}
	return object, r.setNamespace(object)
}

// setNamespace sets the object's namespace to the namespace in the path if the object has none. It returns an error if the
// object's namespace or name differs from the path.
func (r *request) setNamespace(object client.Object) error {
	if object.GetNamespace() == "" {
		object.SetNamespace(r.key.Namespace)
	}
	if client.ObjectKeyFromObject(object) != r.key {
		return apierrors.NewBadRequest("the name or namespace of the object does not match the path")
	}
	return nil
}

// removeOptions reads the options of a delete request. The body is optional.
func (s *Server) removeOptions(r *request) (options metav1.DeleteOptions, err error) {
	body, err := r.body()
	if err != nil || len(body) == 0 {
		return options, err
	}
	kind := corev1.SchemeGroupVersion.WithKind("DeleteOptions") // clients also send it with the group of the object
	if _, _, err := s.decoder.Decode(body, &kind, &options); err != nil {
		return options, invalidBody(kind)
	}
	return options, nil
}

// invalidBody returns a 400 error. It does not quote the body, because it could be a Secret.
func invalidBody(wanted schema.GroupVersionKind) error {
	return apierrors.NewBadRequest("the body is not a " + wanted.Kind)
}
