package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// domain finds what cannot be the cluster's own domain.
func (p *problems) domain(config *spec.DNS) {
	if config == nil {
		return
	}

	if wrong := validation.IsDNS1123Subdomain(config.Domain); len(wrong) > 0 {
		p.add("dnsConfig.domain", "%q is no domain: %s", config.Domain, wrong[0])
	}

	primaries := 0

	for i, provider := range config.Providers {
		at := fmt.Sprintf("dnsConfig.providers[%d]", i)
		if provider == nil {
			p.add(at, "must not be null")

			continue
		}

		p.present(at+".type", provider.Type)
		p.present(at+".secretName", provider.SecretName)

		if provider.Primary {
			primaries++
		}
	}

	if len(config.Providers) > 0 && primaries != 1 {
		p.add("dnsConfig.providers", "must hold one primary provider, not %d", primaries)
	}
}
