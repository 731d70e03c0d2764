package validation

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// maxNames is Gardener's limit for the total length of a Shoot name and its project name, in characters. Gardener derives the
// names of cloud resources from both, and cloud providers limit the length of these names.
const maxNames = 21

// cluster validates the fields of clusterConfig.gardenerConfig. Messages name the fields without that prefix; paths include it.
func (p *problems) cluster(config *spec.Cluster, rules Rules) {
	p.within = "clusterConfig.gardenerConfig."
	defer func() { p.within = "" }()

	first := shoot.FirstPool(config)
	p.name(config.Name, rules.Project)
	p.version(config.KubernetesVersion)
	p.present("region", config.Region)
	p.binding(config.TargetSecret)
	p.machines("", first, config.Provider)
	p.workers("", first)
	p.oneOf("purpose", config.Purpose, purposes()...)
	p.oneOf("controlPlaneFailureTolerance", config.ControlPlaneFailureTolerance, "node", "zone")
	p.additionalWorkers(config, p.provider(config), nil)
	p.identityProvider(config.OIDCConfig)
	p.domain(config.DNSConfig)
}

// purposes returns the purposes that Gardener accepts from users. Gardener reserves "infrastructure" for itself.
func purposes() []string { return []string{"evaluation", "testing", "development", "production"} }

// name validates the name of the Shoot. Gardener joins the names of project and Shoot with two hyphens, so the name must not
// contain two hyphens in a row. A unique index in the table of runtimes guarantees that names are unique within the project.
func (p *problems) name(name, project string) {
	if reasons := validation.IsDNS1123Label(name); len(reasons) > 0 {
		p.add("name", "%q is not a valid Shoot name: %s", name, reasons[0])
	}

	p.addIf(strings.Contains(name, "--"), "name", "must not contain consecutive hyphens")

	if length := len(name) + len(project); length > maxNames {
		p.add("name", "is too long: together with the project name %q it has %d characters, but the limit is %d", project, length, maxNames)
	}
}

// version validates the form of a Kubernetes version. Only the cloud profile lists the versions that Gardener offers, and this
// package does not read the cloud profile. Gardener rejects an unknown version when the Shoot is created.
func (p *problems) version(version string) {
	p.addIf(!IsKubernetesVersion(version), "kubernetesVersion", "must look like 1.33 or 1.33.2, not %q", version)
}

// IsKubernetesVersion reports whether the string has the form of a Kubernetes version, with or without a patch number.
func IsKubernetesVersion(text string) bool {
	return regexp.MustCompile(`^[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,4})?$`).MatchString(text)
}

// binding validates the form of a CredentialsBinding name. Gardener rejects a Shoot whose binding does not exist.
func (p *problems) binding(name string) {
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		p.add("targetSecret", "%q is not a valid CredentialsBinding name: %s", name, reasons[0])
	}
}

// domain validates the domain of the cluster and its DNS providers. Gardener requires exactly one primary provider, which manages
// the records of the domain.
func (p *problems) domain(config *spec.DNS) {
	if config == nil {
		return
	}

	if reasons := validation.IsDNS1123Subdomain(config.Domain); len(reasons) > 0 {
		p.add("dnsConfig.domain", "%q is not a domain: %s", config.Domain, reasons[0])
	}

	primaries, used := 0, map[string]bool{}

	for i, provider := range config.Providers {
		at := fmt.Sprintf("dnsConfig.providers[%d]", i)
		if provider == nil {
			p.add(at, "must not be null")

			continue
		}

		p.present(at+".type", provider.Type)
		p.dnsCredentials(at, provider)

		key := provider.Type + "\x00" + provider.SecretName
		p.addIf(provider.SecretName != "" && used[key], at+".secretName", "repeats %q for the type %s", provider.SecretName, provider.Type)
		used[key] = true

		if provider.Primary {
			primaries++
		}
	}

	p.addIf(len(config.Providers) > 0 && primaries != 1,
		"dnsConfig.providers", "must contain exactly one primary provider, not %d", primaries)
}

// dnsCredentials requires credentials, except for the type shoot.DNSUnmanaged, with which nobody manages the records of the domain: Gardener
// then accepts no credentials, and only a primary provider.
func (p *problems) dnsCredentials(at string, provider *spec.DNSProvider) {
	if provider.Type != shoot.DNSUnmanaged {
		p.present(at+".secretName", provider.SecretName)

		return
	}

	p.addIf(provider.SecretName != "", at+".secretName", "must be empty for the type %s", shoot.DNSUnmanaged)
	p.addIf(!provider.Primary, at+".primary", "must be true for the type %s", shoot.DNSUnmanaged)
}

// signingAlgorithms returns the signature algorithms that kube-apiserver accepts for OIDC tokens. The list in an order is
// validated but has no effect: the order becomes an AuthenticationConfiguration, which has no field for algorithms, so
// kube-apiserver accepts all of them.
func signingAlgorithms() []string {
	return []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"}
}

// identityProvider rejects an identity provider that kube-apiserver would not accept. The cluster has no identity provider if
// config is nil or all its strings are empty.
func (p *problems) identityProvider(config *spec.OIDC) {
	if !shoot.HasIdentityProvider(config) {
		return
	}

	p.present("oidcConfig.clientID", config.ClientID)
	p.present("oidcConfig.usernameClaim", config.UsernameClaim)

	issuer, err := url.Parse(config.IssuerURL)
	if err != nil || issuer.Scheme != "https" || issuer.Host == "" || issuer.User != nil ||
		issuer.RawQuery != "" || strings.ContainsAny(config.IssuerURL, "?#") {
		p.add("oidcConfig.issuerURL", "must be an https URL without user, query or fragment, not %q", config.IssuerURL)
	}

	for i, algorithm := range config.SigningAlgs {
		if !slices.Contains(signingAlgorithms(), algorithm) {
			p.add(fmt.Sprintf("oidcConfig.signingAlgs[%d]", i), "must be one of %s, not %q",
				strings.Join(signingAlgorithms(), ", "), algorithm)
		}
	}
}
