package runtimes

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	bindingsPath = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"

	maxBody = 1 << 20
)

// bindings are the ClusterRoleBindings of all runtimes. They give nobody any rights, as there is nothing to have rights to.
type bindings struct {
	mu      sync.Mutex
	version int
	// byRuntime holds them by technical ID and name.
	byRuntime map[string]map[string]rbacv1.ClusterRoleBinding
}

func newBindings() *bindings {
	return &bindings{byRuntime: map[string]map[string]rbacv1.ClusterRoleBinding{}}
}

// forget drops those of a runtime.
func (b *bindings) forget(technicalID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byRuntime, technicalID)
}

func (b *bindings) get(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	present, ok := b.byRuntime[r.PathValue("id")][r.PathValue("name")]
	if !ok {
		notFound(w, r)
		return
	}
	reply(w, http.StatusOK, present)
}

func (b *bindings) list(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := rbacv1.ClusterRoleBindingList{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBindingList"},
		Items:    []rbacv1.ClusterRoleBinding{},
	}
	for _, each := range b.byRuntime[r.PathValue("id")] {
		list.Items = append(list.Items, each)
	}
	reply(w, http.StatusOK, list)
}

func (b *bindings) create(w http.ResponseWriter, r *http.Request) {
	b.write(w, r, func(given, present *rbacv1.ClusterRoleBinding) bool {
		if present != nil {
			fail(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "clusterrolebinding "+given.Name+" exists already")
		}
		return present == nil
	})
}

func (b *bindings) update(w http.ResponseWriter, r *http.Request) {
	b.write(w, r, func(given, present *rbacv1.ClusterRoleBinding) bool {
		switch {
		case present == nil || given.Name != r.PathValue("name"):
			notFound(w, r)
			return false
		case given.ResourceVersion != "" && given.ResourceVersion != present.ResourceVersion:
			fail(w, http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
			return false
		case given.RoleRef != present.RoleRef:
			fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "roleRef: cannot change roleRef")
			return false
		}
		return true
	})
}

// write stores what the request holds, if it is allowed beside what is there; allowed answers if not.
func (b *bindings) write(w http.ResponseWriter, r *http.Request, allowed func(given, present *rbacv1.ClusterRoleBinding) bool) {
	var given rbacv1.ClusterRoleBinding
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&given); err != nil || given.Name == "" {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "the body is no ClusterRoleBinding with a name")
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id := r.PathValue("id")
	var present *rbacv1.ClusterRoleBinding
	if found, ok := b.byRuntime[id][given.Name]; ok {
		present = &found
	}
	if !allowed(&given, present) {
		return
	}
	if b.byRuntime[id] == nil {
		b.byRuntime[id] = map[string]rbacv1.ClusterRoleBinding{}
	}
	b.version++
	given.TypeMeta = metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}
	given.ResourceVersion = strconv.Itoa(b.version)
	b.byRuntime[id][given.Name] = given
	reply(w, http.StatusOK, given)
}

func (b *bindings) remove(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.byRuntime[r.PathValue("id")][r.PathValue("name")]; !ok {
		notFound(w, r)
		return
	}
	delete(b.byRuntime[r.PathValue("id")], r.PathValue("name"))
	reply(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}

func notFound(w http.ResponseWriter, r *http.Request) {
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "clusterrolebinding "+r.PathValue("name")+" not found")
}
