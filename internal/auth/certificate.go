package auth

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/utils/clock"
)

// Certificates authenticates clients by their TLS certificates, which the server has verified against its client authorities.
type Certificates struct {
	// Rules grant roles by cn, o, ou, dns, email or uri of the certificate.
	Rules Rules
	Clock clock.PassiveClock
}

// Authenticate implements Authenticator. The handshake has verified the certificate; only its expiry is checked again for each request.
func (c Certificates) Authenticate(r *http.Request) (Identity, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return Identity{}, ErrNoCredentials
	}

	presented := r.TLS.VerifiedChains[0][0]
	if c.Clock.Now().After(presented.NotAfter) { // a connection may last longer than its certificate
		return Identity{}, reject("The certificate of the client has expired.")
	}

	attributes := attributesOf(presented)

	return Identity{Name: nameIn(presented, attributes), Means: ByCertificate, Roles: c.Rules.roles(attributes)}, nil
}

// Challenge implements Authenticator: HTTP defines no challenge for certificates.
func (Certificates) Challenge() string { return "" }

// certificateAttributes returns the attributes that rules for certificates may name.
func certificateAttributes() []string { return []string{"cn", "o", "ou", "dns", "email", "uri"} }

// attributesOf returns the attributes of certificateAttributes. An attribute that the certificate lacks has no values.
func attributesOf(certificate *x509.Certificate) map[string][]string {
	attributes := map[string][]string{
		"o": certificate.Subject.Organization, "ou": certificate.Subject.OrganizationalUnit,
		"dns": certificate.DNSNames, "email": certificate.EmailAddresses,
	}

	if name := certificate.Subject.CommonName; name != "" {
		attributes["cn"] = []string{name}
	}

	for _, uri := range certificate.URIs {
		attributes["uri"] = append(attributes["uri"], uri.String())
	}

	return attributes
}

// nameIn returns the client's name: the common name, else the first alternative name, else the serial number of the certificate.
func nameIn(certificate *x509.Certificate, attributes map[string][]string) string {
	for _, attribute := range []string{"cn", "uri", "dns", "email"} {
		if values := attributes[attribute]; len(values) > 0 {
			return values[0]
		}
	}

	return cmp.Or(certificate.SerialNumber.Text(16), "certificate")
}

// CheckCertificateRules rejects rules with attributes that certificates do not have.
func CheckCertificateRules(rules Rules) error {
	for _, rule := range rules {
		if !slices.Contains(certificateAttributes(), rule.Attribute) {
			return fmt.Errorf("certificates have no attribute %q: use %s", rule.Attribute, strings.Join(certificateAttributes(), ", "))
		}
	}

	return nil
}
