package validation

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// signingAlgorithms are what API servers accept. They take them all: an order may name them, and restricts nothing by it.
func signingAlgorithms() []string {
	return []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"}
}

// identityProvider finds what kube-apiserver could not use.
func (p *problems) identityProvider(config *spec.OIDC) {
	if !shoot.HasIdentityProvider(config) {
		return
	}

	p.present("oidcConfig.clientID", config.ClientID)
	p.present("oidcConfig.usernameClaim", config.UsernameClaim)

	issuer, err := url.Parse(config.IssuerURL)
	if err != nil || issuer.Scheme != "https" || issuer.Host == "" || issuer.User != nil ||
		issuer.RawQuery != "" || strings.ContainsAny(config.IssuerURL, "?#") {
		p.add("oidcConfig.issuerURL", "must be an https address without user, query and fragment, not %q", config.IssuerURL)
	}

	for i, algorithm := range config.SigningAlgs {
		if !slices.Contains(signingAlgorithms(), algorithm) {
			p.add(fmt.Sprintf("oidcConfig.signingAlgs[%d]", i), "must be one of %s, not %q",
				strings.Join(signingAlgorithms(), ", "), algorithm)
		}
	}
}
