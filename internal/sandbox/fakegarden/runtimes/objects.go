package runtimes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/store"
)

const objectsFolder = "objects"

// kind is a kind of objects that the runtimes have.
type kind struct {
	schema.GroupVersionKind

	resource   string
	namespaced bool
}

func (k kind) path() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.resource) }

// kinds are those that access is made of, and some that one may have access to: what Kyma and the service catalog have in clusters, too.
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

// groups lists the groups of the kinds, each once and in one version.
func groups() []schema.GroupVersion {
	var found []schema.GroupVersion
	for _, known := range kinds() {
		if !slices.Contains(found, known.GroupVersion()) {
			found = append(found, known.GroupVersion())
		}
	}
	return found
}

// rootOf is where the kinds of a group are served.
func rootOf(group schema.GroupVersion) string {
	if group.Group == "" {
		return "/api/" + group.Version
	}
	return "/apis/" + group.String()
}

// custom has the scheme take all kinds for objects of no type that it does not know.
func custom(scheme *k8sruntime.Scheme) error {
	for _, known := range kinds() {
		if !scheme.Recognizes(known.GroupVersionKind) {
			scheme.AddKnownTypeWithName(known.GroupVersionKind, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(known.GroupVersion().WithKind(known.Kind+"List"), &unstructured.UnstructuredList{})
		}
	}
	return nil
}

// kindOf finds a kind by the parts of a path.
func kindOf(group, resource string) (kind, bool) {
	for _, known := range kinds() {
		if known.Group == group && known.resource == resource {
			return known, true
		}
	}
	return kind{}, false
}

// objects are those of one runtime. They are kept in files, so they outlive the process.
type objects struct {
	*store.Store

	scheme *k8sruntime.Scheme
	decode k8sruntime.Decoder
	// conditional is held by changes that depend on what is there.
	conditional sync.Mutex
}

func (s *Server) objectsDir(technicalID string) string {
	return filepath.Join(s.dir, objectsFolder, technicalID)
}

// openObjects reads the objects of a runtime, which has at least the namespaces that every cluster has.
func (s *Server) openObjects(ctx context.Context, technicalID string) (*objects, error) {
	scheme := k8sruntime.NewScheme()
	builder := k8sruntime.NewSchemeBuilder(corev1.AddToScheme, rbacv1.AddToScheme, authenticationv1.AddToScheme, custom)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the kinds of the runtimes: %w", err)
	}
	stored, err := store.Open(store.Options{
		Scheme: scheme, Dir: s.objectsDir(technicalID), Rules: func(store.Reader) store.Rules { return anything{} },
	})
	if err != nil {
		return nil, fmt.Errorf("open the objects of runtime %s: %w", technicalID, err)
	}
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		err := stored.Create(corev1.SchemeGroupVersion.WithResource("namespaces"), namespace, "")
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("make namespace %s of runtime %s: %w", name, technicalID, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open the objects of runtime %s: %w", technicalID, err)
	}
	return &objects{Store: stored, scheme: scheme, decode: serializer.NewCodecFactory(scheme).UniversalDeserializer()}, nil
}

// removeObjects removes what a runtime had.
func (s *Server) removeObjects(technicalID string) error {
	if err := os.RemoveAll(s.objectsDir(technicalID)); err != nil {
		return fmt.Errorf("remove the objects of runtime %s: %w", technicalID, err)
	}
	return nil
}

// anything takes every object.
type anything struct{}

func (anything) Default(_, _ client.Object) error     { return nil }
func (anything) Validate(_, _ client.Object) error    { return nil }
func (anything) ValidateDelete(_ client.Object) error { return nil }
