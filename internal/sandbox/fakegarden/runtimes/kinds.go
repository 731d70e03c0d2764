package runtimes

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a kind of objects that the runtimes serve.
type kind struct {
	schema.GroupVersionKind

	plural     string
	namespaced bool
}

func (k kind) resource() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.plural) }

// kinds returns the served kinds: those that grant access to a runtime, those of Compass and the service catalog, which Kyma installs, and
// some for workloads. A real cluster serves more: requests for other kinds fail with 404.
func kinds() []kind {
	core, rbac := corev1.SchemeGroupVersion, rbacv1.SchemeGroupVersion
	compass := schema.GroupVersion{Group: "compass.kyma-project.io", Version: "v1alpha1"}
	catalog := schema.GroupVersion{Group: "servicecatalog.k8s.io", Version: "v1beta1"}
	return []kind{
		{core.WithKind("Namespace"), "namespaces", false},
		{core.WithKind("ServiceAccount"), "serviceaccounts", true},
		{core.WithKind("ConfigMap"), "configmaps", true},
		{core.WithKind("Secret"), "secrets", true},
		{rbac.WithKind("ClusterRoleBinding"), "clusterrolebindings", false},
		{compass.WithKind("CompassConnection"), "compassconnections", false},
		{catalog.WithKind("ClusterServiceBroker"), "clusterservicebrokers", false},
		{catalog.WithKind("ClusterServiceClass"), "clusterserviceclasses", false},
		{catalog.WithKind("ServiceBroker"), "servicebrokers", true},
		{catalog.WithKind("ServiceInstance"), "serviceinstances", true},
		{catalog.WithKind("ServiceBinding"), "servicebindings", true},
	}
}

// newScheme returns a scheme with the kinds. Custom resources have no Go type and are unstructured.
func newScheme() (*k8sruntime.Scheme, error) {
	scheme := k8sruntime.NewScheme()
	builder := k8sruntime.NewSchemeBuilder(corev1.AddToScheme, rbacv1.AddToScheme, addTokenRequest)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds of the runtimes: %w", err)
	}
	for _, kind := range kinds() {
		if !scheme.Recognizes(kind.GroupVersionKind) {
			scheme.AddKnownTypeWithName(kind.GroupVersionKind, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
		}
	}
	return scheme, nil
}

// root returns the path of the kinds of a group.
func root(group schema.GroupVersion) string {
	if group.Group == corev1.GroupName {
		return "/api/" + group.Version
	}
	return "/apis/" + group.String()
}

// discovery returns the discovery documents by path. Each group has one version.
func discovery() map[string]any {
	core := metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	resources := map[string]*metav1.APIResourceList{}
	for _, kind := range kinds() {
		path, group := root(kind.GroupVersion()), kind.GroupVersion().String()
		if resources[path] == nil {
			resources[path] = &metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group,
			}
			if kind.Group != corev1.GroupName {
				version := metav1.GroupVersionForDiscovery{GroupVersion: group, Version: kind.Version}
				groups.Groups = append(groups.Groups, metav1.APIGroup{
					Name: kind.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
				})
			}
		}
		resources[path].APIResources = append(resources[path].APIResources, metav1.APIResource{
			Name: kind.plural, Kind: kind.Kind, Namespaced: kind.namespaced,
			Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update"},
		})
	}
	documents := map[string]any{"/api": core, "/apis": groups}
	for path, list := range resources {
		documents[path] = list
	}
	return documents
}

// allows reports whether a ClusterRole allows a request for the kind. It knows the default roles of every cluster, simplified to reading and
// writing; other roles allow nothing.
func (k kind) allows(role, method string) bool {
	reads := method == http.MethodGet
	switch role {
	case administrator:
		return true
	case "edit":
		return k.namespaced || reads && k.plural == "namespaces"
	case "view":
		return reads && (k.namespaced && k.plural != "secrets" || k.plural == "namespaces")
	}
	return false
}
