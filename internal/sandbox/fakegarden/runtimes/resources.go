package runtimes

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// largestObject is how long an object may be, in bytes.
const largestObject = 3 << 20

// discovery tells clients what there is, by path.
func discovery() map[string]any {
	byGroup := map[string][]metav1.APIResource{}
	for _, known := range kinds() {
		byGroup[known.Group] = append(byGroup[known.Group], metav1.APIResource{
			Name: known.resource, Kind: known.Kind, Namespaced: known.namespaced,
			Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update"},
		})
	}
	documents := map[string]any{"/api": metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}}
	others := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, group := range groups() {
		documents[rootOf(group)] = metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: group.String(), APIResources: byGroup[group.Group],
		}
		if group.Group != corev1.GroupName {
			version := metav1.GroupVersionForDiscovery{GroupVersion: group.String(), Version: group.Version}
			others.Groups = append(others.Groups, metav1.APIGroup{
				Name: group.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
			})
		}
	}
	documents["/apis"] = others
	return documents
}

// target is the object, or the kind of objects, that a request is about.
type target struct {
	served
	kind

	namespace, name string
}

// of finds the kind of the path, and out whether the caller may do that. What goes wrong is told as an API server does.
func of(group string, do func(target, *http.Request) (status int, body any, err error)) func(http.ResponseWriter, *http.Request, served) {
	return func(w http.ResponseWriter, r *http.Request, to served) {
		wanted, known := kindOf(group, r.PathValue("resource"))
		namespace, name := r.PathValue("namespace"), r.PathValue("name")
		switch {
		case !known, namespace != "" && !wanted.namespaced, namespace == "" && wanted.namespaced && (name != "" || r.Method == http.MethodPost):
			fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the simulated runtime has no such objects")
			return
		case !to.caller.may(r.Method, wanted):
			refuse(w, apierrors.NewForbidden(wanted.path().GroupResource(), name,
				errors.New("user "+to.caller.name+" has no role that allows it")))
			return
		}
		status, body, err := do(target{to, wanted, namespace, name}, r)
		if err != nil {
			refuse(w, err)
			return
		}
		reply(w, status, body)
	}
}

func list(at target, _ *http.Request) (int, any, error) {
	found, err := at.objects.List(at.path(), at.GroupVersionKind, at.namespace)
	if err == nil {
		found.GetObjectKind().SetGroupVersionKind(at.GroupVersion().WithKind(at.Kind + "List"))
	}
	return http.StatusOK, found, err
}

func get(at target, _ *http.Request) (int, any, error) {
	found, err := at.objects.Get(at.path(), at.namespace, at.name)
	if err == nil {
		found.GetObjectKind().SetGroupVersionKind(at.GroupVersionKind)
	}
	return http.StatusOK, found, err
}

// sent is the object that the request holds.
func sent(at target, r *http.Request) (client.Object, error) {
	empty, err := at.objects.scheme.New(at.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	object, ok := empty.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no metadata", empty)
	}
	object.GetObjectKind().SetGroupVersionKind(at.GroupVersionKind) // what has no type of its own knows its kind by this alone
	return object, at.objects.read(r, object)
}

// update exchanges an object. As in every cluster, a binding keeps its role.
func update(at target, r *http.Request) (int, any, error) {
	object, err := sent(at, r)
	if err != nil {
		return 0, nil, err
	}
	if object.GetName() != at.name {
		return 0, nil, apierrors.NewBadRequest("the body has another name than the path")
	}
	object.SetNamespace(at.namespace)
	if binding, ok := object.(*rbacv1.ClusterRoleBinding); ok {
		present := &rbacv1.ClusterRoleBinding{}
		if err := at.objects.Lookup(client.ObjectKeyFromObject(binding), present); err != nil {
			return 0, nil, err
		}
		if present.RoleRef != binding.RoleRef {
			return 0, nil, apierrors.NewInvalid(at.GroupKind(), at.name, field.ErrorList{
				field.Invalid(field.NewPath("roleRef"), binding.RoleRef, "cannot change roleRef"),
			})
		}
	}
	if err := at.objects.Update(at.path(), object, at.namespace); err != nil {
		return 0, nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(at.GroupVersionKind)
	return http.StatusOK, object, at.end(object)
}

func create(at target, r *http.Request) (int, any, error) {
	object, err := sent(at, r)
	if err != nil {
		return 0, nil, err
	}
	if err := at.place(object); err != nil {
		return 0, nil, err
	}
	if err := at.objects.Create(at.path(), object, at.namespace); err != nil {
		return 0, nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(at.GroupVersionKind)
	return http.StatusCreated, object, nil
}

// place puts a new object where the path says, if that is there.
func (t target) place(object client.Object) error {
	if !t.namespaced {
		return nil
	}
	object.SetNamespace(t.namespace)
	return t.objects.Lookup(client.ObjectKey{Name: t.namespace}, &corev1.Namespace{})
}

// read decodes the body of a request, whose form may be JSON or that of protocol buffers, as typed clients send it.
func (o *objects) read(r *http.Request, into client.Object) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, largestObject))
	if err != nil {
		return apierrors.NewBadRequest("the body cannot be read")
	}
	wanted, err := apiutil.GVKForObject(into, o.scheme)
	if err != nil {
		return err
	}
	if _, given, err := o.decode.Decode(body, &wanted, into); err != nil || *given != wanted {
		return apierrors.NewBadRequest("the body is no " + wanted.Kind)
	}
	return nil
}

// remove removes an object, of any or of one certain UID. One with finalizers goes when the last of them does.
func remove(at target, r *http.Request) (int, any, error) {
	options, err := at.objects.deletion(r)
	if err != nil {
		return 0, nil, err
	}
	at.objects.conditional.Lock()
	defer at.objects.conditional.Unlock()
	present, err := at.present()
	if err != nil {
		return 0, nil, err
	}
	if asked := options.Preconditions; asked != nil && asked.UID != nil && present.GetUID() != *asked.UID {
		return 0, nil, apierrors.NewConflict(at.path().GroupResource(), at.name, errors.New("the UID is another one"))
	}
	if len(present.GetFinalizers()) > 0 {
		present.SetDeletionTimestamp(new(metav1.Now()))
		return http.StatusOK, present, at.objects.Update(at.path(), present, at.namespace)
	}
	return http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
	}, at.objects.Delete(at.path(), at.namespace, at.name)
}

// end removes an object that was to go and has lost its last finalizer.
func (t target) end(changed client.Object) error {
	if changed.GetDeletionTimestamp() == nil || len(changed.GetFinalizers()) > 0 {
		return nil
	}
	return t.objects.Delete(t.path(), t.namespace, t.name)
}

// deletion reads how an object is to be deleted; a request may leave it out.
func (o *objects) deletion(r *http.Request) (metav1.DeleteOptions, error) {
	var options metav1.DeleteOptions
	body, err := io.ReadAll(io.LimitReader(r.Body, largestObject))
	if err == nil && len(body) > 0 {
		_, _, err = o.decode.Decode(body, new(corev1.SchemeGroupVersion.WithKind("DeleteOptions")), &options)
	}
	if err != nil {
		return options, apierrors.NewBadRequest("the body is no DeleteOptions")
	}
	return options, nil
}

// refuse answers with an error of the store, which knows how an API server tells it.
func refuse(w http.ResponseWriter, err error) {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	told := status.Status()
	told.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	reply(w, int(told.Code), told)
}
