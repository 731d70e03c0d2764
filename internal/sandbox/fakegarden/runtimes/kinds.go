package runtimes

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/kubeapi"
)

// categoryAll is the category of the kinds that `kubectl get all` lists.
const categoryAll = "all"

// kinds returns the served kinds. Requests for other kinds return 404.
func kinds() []kubeapi.Kind { return slices.Concat(storedKinds(), emptyKinds()) }

// storedKinds returns the kinds whose objects clients can create: kinds that grant or review access to a runtime, the Compass and
// service catalog kinds, and some kinds for configuration. A real cluster serves the Compass and service catalog kinds only after
// Kyma has been installed; here they always exist.
func storedKinds() []kubeapi.Kind {
	core, rbac := corev1.SchemeGroupVersion, rbacv1.SchemeGroupVersion
	authentication, authorization := authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion
	compass := schema.GroupVersion{Group: "compass.kyma-project.io", Version: "v1alpha1"}
	catalog := schema.GroupVersion{Group: "servicecatalog.k8s.io", Version: "v1beta1"}
	return []kubeapi.Kind{
		{GroupVersionKind: core.WithKind("Namespace"), ShortNames: []string{"ns"}},
		{GroupVersionKind: core.WithKind("ServiceAccount"), Namespaced: true, ShortNames: []string{"sa"}},
		{GroupVersionKind: core.WithKind("ConfigMap"), Namespaced: true, ShortNames: []string{"cm"}},
		{GroupVersionKind: core.WithKind("Secret"), Namespaced: true},
		{GroupVersionKind: rbac.WithKind("ClusterRoleBinding")},
		{GroupVersionKind: authentication.WithKind("TokenReview"), Review: true},
		{GroupVersionKind: authorization.WithKind("SubjectAccessReview"), Review: true},
		{GroupVersionKind: compass.WithKind("CompassConnection")},
		{GroupVersionKind: catalog.WithKind("ClusterServiceBroker")},
		{GroupVersionKind: catalog.WithKind("ClusterServiceClass")},
		{GroupVersionKind: catalog.WithKind("ServiceBroker"), Namespaced: true},
		{GroupVersionKind: catalog.WithKind("ServiceInstance"), Namespaced: true},
		{GroupVersionKind: catalog.WithKind("ServiceBinding"), Namespaced: true},
	}
}

// emptyKinds returns common kinds that never have objects here, so that clients get empty lists instead of errors. They are
// read-only: nothing runs workloads, so an object would never become ready. They need no Go types.
func emptyKinds() []kubeapi.Kind {
	core, rbac := corev1.SchemeGroupVersion, rbacv1.SchemeGroupVersion
	apps, batch := schema.GroupVersion{Group: "apps", Version: "v1"}, schema.GroupVersion{Group: "batch", Version: "v1"}
	networking := schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
	storage := schema.GroupVersion{Group: "storage.k8s.io", Version: "v1"}
	workload := func(kind schema.GroupVersionKind, short ...string) kubeapi.Kind {
		return kubeapi.Kind{GroupVersionKind: kind, Namespaced: true, ReadOnly: true, ShortNames: short, Categories: []string{categoryAll}}
	}
	namespaced := func(kind schema.GroupVersionKind, short ...string) kubeapi.Kind {
		return kubeapi.Kind{GroupVersionKind: kind, Namespaced: true, ReadOnly: true, ShortNames: short}
	}
	clusterWide := func(kind schema.GroupVersionKind, short ...string) kubeapi.Kind {
		return kubeapi.Kind{GroupVersionKind: kind, ReadOnly: true, ShortNames: short}
	}
	return []kubeapi.Kind{
		workload(core.WithKind("Pod"), "po"), workload(core.WithKind("Service"), "svc"),
		workload(apps.WithKind("Deployment"), "deploy"), workload(apps.WithKind("ReplicaSet"), "rs"),
		workload(apps.WithKind("DaemonSet"), "ds"), workload(apps.WithKind("StatefulSet"), "sts"),
		workload(batch.WithKind("Job")), workload(batch.WithKind("CronJob"), "cj"),
		namespaced(core.WithKind("Event"), "ev"), namespaced(core.WithKind("PersistentVolumeClaim"), "pvc"),
		namespaced(networking.WithKind("Ingress"), "ing"), namespaced(networking.WithKind("NetworkPolicy"), "netpol"),
		namespaced(rbac.WithKind("Role")), namespaced(rbac.WithKind("RoleBinding")),
		clusterWide(core.WithKind("Node"), "no"), clusterWide(core.WithKind("PersistentVolume"), "pv"),
		clusterWide(rbac.WithKind("ClusterRole")), clusterWide(networking.WithKind("IngressClass")),
		clusterWide(storage.WithKind("StorageClass"), "sc"),
	}
}
