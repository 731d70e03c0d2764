package runtimes

import (
	"net/http"
	"slices"
	"strings"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const administrator = "cluster-admin"

// caller is who makes a request.
type caller struct {
	name string
	// roles are the ClusterRoles that are bound to the caller.
	roles []string
}

// served is a runtime with a request to it.
type served struct {
	*runtime

	technicalID string
	caller      caller
}

// authenticated lets only those through whom the runtime knows, with their roles.
func (s *Server) authenticated(next func(http.ResponseWriter, *http.Request, served)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		technicalID := r.PathValue("id")
		s.mu.RLock()
		runtime, started := s.runtimes[technicalID]
		s.mu.RUnlock()
		if !started {
			fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no runtime answers here")
			return
		}
		known, ok := s.callerOf(r, technicalID, runtime)
		switch {
		case !ok:
			fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
		case len(known.roles) == 0:
			fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "user "+known.name+" has no role in this runtime")
		default:
			next(w, r, served{runtime: runtime, technicalID: technicalID, caller: known})
		}
	}
}

// callerOf tells who the client certificate or the token of the request is for.
func (s *Server) callerOf(r *http.Request, technicalID string, runtime *runtime) (caller, bool) {
	if user, ok := verify(r, runtime.clients); ok {
		known := caller{name: user.CommonName}
		if slices.ContainsFunc(user.Organization, administers) {
			known.roles = []string{administrator}
		}
		return known, true
	}
	token, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !given {
		return caller{}, false
	}
	said, ok := s.read(token, technicalID)
	if !ok {
		return caller{}, false
	}
	from := said.Account
	account := &corev1.ServiceAccount{}
	if err := runtime.objects.Lookup(client.ObjectKey{Namespace: from.Namespace, Name: from.Account.Name}, account); err != nil ||
		string(account.UID) != from.Account.UID {
		return caller{}, false
	}
	return caller{name: said.Subject, roles: runtime.objects.rolesOf(account)}, true
}

// administers tells whether Gardener issues admin kubeconfigs for members of the group.
func administers(group string) bool {
	return group == v1beta1constants.ShootSystemAdminsGroupName || group == v1beta1constants.ShootProjectAdminsGroupName
}

// rolesOf lists the ClusterRoles that are bound to an account.
func (o *objects) rolesOf(account *corev1.ServiceAccount) []string {
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := o.LookupAll(bindings); err != nil {
		return nil
	}
	var roles []string
	for _, binding := range bindings.Items {
		if slices.ContainsFunc(binding.Subjects, func(subject rbacv1.Subject) bool {
			return subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == account.Namespace && subject.Name == account.Name
		}) {
			roles = append(roles, binding.RoleRef.Name)
		}
	}
	return roles
}

// may reports whether one of the caller's roles, which are those of every cluster, allows the request.
func (c caller) may(method string, wanted kind) bool {
	reads := method == http.MethodGet
	for _, role := range c.roles {
		switch {
		case role == administrator,
			role == "edit" && wanted.namespaced,
			role == "view" && reads && wanted.namespaced && wanted.resource != "secrets",
			(role == "edit" || role == "view") && reads && wanted.resource == "namespaces":
			return true
		}
	}
	return false
}
