//nolint:staticcheck // Gardener wants more than one provider, and their domains, in the configuration of an extension that a landscape may lack.
package shoot

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// dnsOf returns nil when Gardener is to choose the domain.
func dnsOf(order *spec.DNS) *gardencorev1beta1.DNS {
	if order == nil {
		return nil
	}

	dns := &gardencorev1beta1.DNS{Domain: &order.Domain}

	for _, provider := range order.Providers {
		dns.Providers = append(dns.Providers, gardencorev1beta1.DNSProvider{
			Type:    &provider.Type,
			Primary: &provider.Primary,
			Domains: domainsOf(provider),
			CredentialsRef: &autoscalingv1.CrossVersionObjectReference{
				APIVersion: "v1", Kind: "Secret", Name: provider.SecretName,
			},
		})
	}

	return dns
}

func domainsOf(provider *spec.DNSProvider) *gardencorev1beta1.DNSIncludeExclude {
	if len(provider.DomainsInclude) == 0 {
		return nil
	}

	return &gardencorev1beta1.DNSIncludeExclude{Include: provider.DomainsInclude}
}
