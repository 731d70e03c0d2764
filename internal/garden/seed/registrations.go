package seed

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// registrations returns the ControllerRegistrations beside those of the providers. Gardener accepts a Shoot only if for all that it
// asks for a controller is registered; that there is none behind these, it does not notice.
func registrations() []client.Object {
	objects := []client.Object{
		registration("calico", "Network"),
		registration(MachineImage, "OperatingSystemConfig"),
	}
	for _, provider := range []string{dnsProvider, "aws-route53", "azure-dns", "google-clouddns"} {
		objects = append(objects, registration(provider, "DNSRecord"))
	}
	for _, extension := range []string{
		"shoot-auditlog-service", "shoot-cert-service", "shoot-dns-service", "shoot-networking-filter", "shoot-oidc-service",
	} {
		objects = append(objects, registration(extension, "Extension"))
	}
	return objects
}

// registration says that a controller takes care of these kinds of extensions of one type; it is named after the type.
func registration(extension string, kinds ...string) *gardencorev1beta1.ControllerRegistration {
	registration := &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: extension}}
	for _, kind := range kinds {
		registration.Spec.Resources = append(registration.Spec.Resources,
			gardencorev1beta1.ControllerResource{Kind: kind, Type: extension, Primary: new(true)})
	}
	return registration
}
