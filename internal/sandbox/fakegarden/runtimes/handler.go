package runtimes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	goruntime "runtime"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// maxBody limits the body of a request, in bytes.
const maxBody = 3 << 20

// handler serves all runtimes, each under its path. A request is authenticated first, then authorized for the kind of its objects; version,
// health and discovery need any role.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(method, path string, answer func(call) (int, any, error)) {
		mux.HandleFunc(strings.TrimSpace(method+" "+pathPrefix+"{id}"+path), func(w http.ResponseWriter, r *http.Request) {
			request, err := s.authenticate(r)
			if err != nil {
				refuse(w, err)
				return
			}
			code, body, err := answer(request)
			if err != nil {
				refuse(w, err)
				return
			}
			reply(w, code, body)
		})
	}
	handle("GET", "/version", func(c call) (int, any, error) {
		return http.StatusOK, versionInfo(s.version(c.Context(), c.technicalID)), nil
	})
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		handle("GET", path, func(call) (int, any, error) { return http.StatusOK, "ok", nil })
	}
	for path, document := range discovery() {
		handle("GET", path, func(call) (int, any, error) { return http.StatusOK, document, nil })
	}
	for _, kind := range kinds() {
		of := func(do func(objects) (int, any, error)) func(call) (int, any, error) {
			return func(c call) (int, any, error) {
				if !slices.ContainsFunc(c.roles, func(role string) bool { return kind.allows(role, c.Method) }) {
					return 0, nil, apierrors.NewForbidden(kind.resource().GroupResource(), c.PathValue("name"),
						fmt.Errorf("user %s has no role that allows it", c.user))
				}
				return do(objects{call: c, kind: kind, namespace: c.PathValue("namespace"), name: c.PathValue("name")})
			}
		}
		all := root(kind.GroupVersion()) + "/" + kind.plural
		path := all
		if kind.namespaced {
			path = root(kind.GroupVersion()) + "/namespaces/{namespace}/" + kind.plural
			handle("GET", all, of(objects.list))
		}
		handle("GET", path, of(objects.list))
		handle("POST", path, of(objects.create))
		handle("GET", path+"/{name}", of(objects.get))
		handle("PUT", path+"/{name}", of(objects.update))
		handle("PATCH", path+"/{name}", of(objects.apply))
		handle("DELETE", path+"/{name}", of(objects.remove))
		if kind.plural == "serviceaccounts" {
			handle("POST", path+"/{name}/token", of(s.createToken))
		}
	}
	handle("", "/", func(call) (int, any, error) {
		return 0, nil, notServed("the simulated runtime does not serve this path")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, notServed("no runtime is served here"))
	})
	return mux
}

// objects is a request for the objects of a kind. With a name it is for one object, with a namespace for those of the namespace. Its methods
// return the status code and the body of the response.
type objects struct {
	call
	kind

	namespace, name string
}

// list returns the objects of the namespace, of all namespaces if it is empty.
func (o objects) list() (int, any, error) {
	found, err := o.store.List(o.resource(), o.GroupVersionKind, o.namespace)
	if err == nil {
		found.GetObjectKind().SetGroupVersionKind(o.GroupVersion().WithKind(o.Kind + "List"))
	}
	return http.StatusOK, found, err
}

func (o objects) get() (int, any, error) {
	found, err := o.store.Get(o.resource(), o.namespace, o.name)
	if err != nil {
		return 0, nil, err
	}
	return o.answer(http.StatusOK, found)
}

// create stores a new object. Its namespace must exist.
func (o objects) create() (int, any, error) {
	object, err := o.body()
	if err != nil {
		return 0, nil, err
	}
	if err := o.place(object); err != nil {
		return 0, nil, err
	}
	if err := o.store.Create(o.resource(), object, o.namespace); err != nil {
		return 0, nil, err
	}
	return o.answer(http.StatusCreated, object)
}

// update replaces an object. As on a real API server, the role of a binding is immutable. The resource version is not compared: the last
// update wins.
func (o objects) update() (int, any, error) {
	object, err := o.body()
	if err != nil {
		return 0, nil, err
	}
	if object.GetName() != o.name {
		return 0, nil, apierrors.NewBadRequest("the name of the object is not that of the path")
	}
	object.SetNamespace(o.namespace)
	if binding, ok := object.(*rbacv1.ClusterRoleBinding); ok {
		present := &rbacv1.ClusterRoleBinding{}
		if err := o.store.Lookup(client.ObjectKeyFromObject(binding), present); err != nil {
			return 0, nil, err
		}
		if present.RoleRef != binding.RoleRef {
			return 0, nil, apierrors.NewInvalid(o.GroupKind(), o.name, field.ErrorList{
				field.Invalid(field.NewPath("roleRef"), binding.RoleRef, "cannot change roleRef"),
			})
		}
	}
	if err := o.store.Update(o.resource(), object, o.namespace); err != nil {
		return 0, nil, err
	}
	return o.answer(http.StatusOK, object)
}

// apply is server-side apply, the only patch that is supported.
func (o objects) apply() (int, any, error) {
	if o.Header.Get("Content-Type") != string(types.ApplyPatchType) {
		return 0, nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", o.resource().GroupResource(),
			o.name, "the simulated runtime supports "+string(types.ApplyPatchType)+" only", 0, true)
	}
	wanted := &unstructured.Unstructured{}
	body, err := io.ReadAll(io.LimitReader(o.Body, maxBody))
	if err != nil || yaml.Unmarshal(body, &wanted.Object) != nil ||
		wanted.GroupVersionKind() != o.GroupVersionKind || wanted.GetName() != o.name {
		return 0, nil, apierrors.NewBadRequest("the body is not a " + o.Kind + " with the name of the path")
	}
	if err := o.place(wanted); err != nil {
		return 0, nil, err
	}
	code := http.StatusOK
	if _, err := o.store.Get(o.resource(), o.namespace, o.name); apierrors.IsNotFound(err) {
		code = http.StatusCreated
	}
	query := o.URL.Query()
	applied, err := o.store.ServerSideApply(o.resource(), wanted, o.namespace, metav1.PatchOptions{
		FieldManager: query.Get("fieldManager"), Force: new(query.Get("force") == "true"), DryRun: query["dryRun"],
	})
	if err != nil {
		return 0, nil, err
	}
	return o.answer(code, applied)
}

// remove deletes an object. The body may have preconditions. An object with finalizers stays until they are removed.
func (o objects) remove() (int, any, error) {
	var options metav1.DeleteOptions
	body, err := io.ReadAll(io.LimitReader(o.Body, maxBody))
	if err == nil && len(body) > 0 {
		_, _, err = o.decode.Decode(body, new(corev1.SchemeGroupVersion.WithKind("DeleteOptions")), &options)
	}
	if err != nil {
		return 0, nil, apierrors.NewBadRequest("the body is not a DeleteOptions")
	}
	if err := o.store.DeleteObject(o.resource(), o.namespace, o.name, options); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, nil
}

// answer sets the object's apiVersion and kind, and returns it with the status code.
func (o objects) answer(code int, object k8sruntime.Object) (int, any, error) {
	object.GetObjectKind().SetGroupVersionKind(o.GroupVersionKind)
	return code, object, nil
}

// body decodes the object in the body of the request: JSON, or the protocol buffers of typed clients.
func (o objects) body() (client.Object, error) {
	empty, err := o.scheme.New(o.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	object, ok := empty.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no metadata", empty)
	}
	object.GetObjectKind().SetGroupVersionKind(o.GroupVersionKind) // an unstructured object knows its kind only from this field
	return object, o.read(o.GroupVersionKind, object)
}

// place sets the namespace of a new object to that of the path, which must exist.
func (o objects) place(object client.Object) error {
	if !o.namespaced {
		return nil
	}
	object.SetNamespace(o.namespace)
	return o.store.Lookup(client.ObjectKey{Name: o.namespace}, &corev1.Namespace{})
}

// versionInfo returns the response of /version. An unknown version leaves the numbers empty.
func versionInfo(kubernetes string) version.Info {
	number := strings.TrimPrefix(kubernetes, "v")
	info := version.Info{
		GitVersion: "v" + number, GitTreeState: "clean", GoVersion: goruntime.Version(), Compiler: goruntime.Compiler,
		Platform: goruntime.GOOS + "/" + goruntime.GOARCH,
	}
	if parts := strings.SplitN(number, ".", 3); len(parts) == 3 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	return info
}

// notServed returns a NotFound for a path, which unlike that of apierrors names no kind.
func notServed(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Message: message, Code: http.StatusNotFound,
	}}
}

// refuse responds with a Status, as an API server does. Errors without a status are internal errors.
func refuse(w http.ResponseWriter, err error) {
	known := apierrors.APIStatus(nil)
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	reply(w, int(status.Code), status)
}

// reply writes a response: a string as text, anything else as JSON.
func reply(w http.ResponseWriter, code int, body any) {
	if text, ok := body.(string); ok {
		_, _ = io.WriteString(w, text) //nolint:gosec // Kubernetes clients read it, not browsers
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // it fails if the client has disconnected
}
