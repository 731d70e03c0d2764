package seed

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// extension is the kind of extensions that are neither of a provider nor of the network or the machines.
const extension = "Extension"

// registrations returns the ControllerRegistrations beside those of the providers. Gardener accepts a Shoot only if for all that it
// asks for a controller is registered; that there is none behind these, it does not notice.
func registrations() []client.Object {
	return []client.Object{
		registration("calico", "Network"),
		registration(MachineImage, "OperatingSystemConfig"),
		registration(dnsProvider, "DNSRecord"),
		registration("aws-route53", "DNSRecord"),
		registration("azure-dns", "DNSRecord"),
		registration("google-clouddns", "DNSRecord"),
		registration("shoot-auditlog-service", extension),
		registration("shoot-cert-service", extension),
		registration("shoot-dns-service", extension),
		registration("shoot-networking-filter", extension),
		registration("shoot-oidc-service", extension),
	}
}

// registration says that a controller takes care of these kinds of extensions of one type, which is also its name.
func registration(name string, kinds ...string) *gardencorev1beta1.ControllerRegistration {
	registration := &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, kind := range kinds {
		registration.Spec.Resources = append(registration.Spec.Resources,
			gardencorev1beta1.ControllerResource{Kind: kind, Type: name, Primary: new(true)})
	}
	return registration
}
