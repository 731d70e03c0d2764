package controlplane

import (
	"context"
	"fmt"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	serviceName      = gardenerName
	serviceNamespace = metav1.NamespaceSystem
	// startedAnnotation is the annotation that contains the time of the last start of Gardener's API server.
	startedAnnotation = "garden/started"
	// priority determines the order of groups and versions in discovery. All of Gardener's groups and versions have the same
	// priority. It has no effect on requests.
	priority = 100
)

// registration makes kube-apiserver forward requests for Gardener's groups to Gardener's API server. It consists of a Service
// with the server's address and an APIService for each version of a group.
type registration struct {
	client client.Client
	port   int32
	ca     []byte
}

// newRegistration prepares the registration of Gardener's API server, which listens on port. ca is the certificate (PEM) of the
// CA that signed its serving certificate.
func newRegistration(admin *rest.Config, port int, ca []byte) (*registration, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering the kinds of the API registration: %w", err)
		}
	}
	c, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("creating the client of the API registration: %w", err)
	}
	return &registration{client: c, port: int32(port), ca: ca}, nil //nolint:gosec // ports fit into int32
}

// samples returns the group versions of Gardener's API, each with one of its kinds. The kind is only used to check that
// the group version is available.
func samples() map[schema.GroupVersion]string {
	return map[schema.GroupVersion]string{
		gardencorev1.SchemeGroupVersion:           "ControllerDeployment",
		gardencorev1beta1.SchemeGroupVersion:      "Shoot",
		seedmanagementv1alpha1.SchemeGroupVersion: "ManagedSeed",
		operationsv1alpha1.SchemeGroupVersion:     "Bastion",
		securityv1alpha1.SchemeGroupVersion:       "CredentialsBinding",
	}
}

// apply registers the groups or updates the registration from an earlier start. It changes an annotation, so that kube-apiserver
// checks the availability of the groups immediately instead of at its next periodic check.
func (r *registration) apply(ctx context.Context) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: serviceName, Namespace: serviceNamespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.client, service, func() error {
		service.Annotations = map[string]string{startedAnnotation: time.Now().UTC().Format(time.RFC3339Nano)}
		service.Spec.Type = corev1.ServiceTypeExternalName
		service.Spec.ExternalName = "127.0.0.1" // an IP address needs no DNS
		return nil
	}); err != nil {
		return fmt.Errorf("registering the service %s: %w", serviceName, err)
	}
	for version := range samples() {
		group := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: version.Version + "." + version.Group}}
		if _, err := controllerutil.CreateOrUpdate(ctx, r.client, group, func() error {
			group.Spec = apiregistrationv1.APIServiceSpec{
				Group:                version.Group,
				Version:              version.Version,
				GroupPriorityMinimum: priority,
				VersionPriority:      priority,
				CABundle:             r.ca,
				Service: &apiregistrationv1.ServiceReference{
					Name: serviceName, Namespace: serviceNamespace, Port: &r.port,
				},
			}
			return nil
		}); err != nil {
			return fmt.Errorf("registering the group %s: %w", version, err)
		}
	}
	return nil
}

// served returns an error until kube-apiserver serves all groups. As a probe, it lists one object of each group.
func (r *registration) served(ctx context.Context) error {
	for version, kind := range samples() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(version.WithKind(kind + "List"))
		if err := r.client.List(ctx, list, client.Limit(1)); err != nil {
			return fmt.Errorf("listing one %s of %s: %w", kind, version, err)
		}
	}
	return nil
}
