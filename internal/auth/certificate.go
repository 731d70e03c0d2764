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

// Certificates authenticates clients by their TLS certificates. The TLS handshake has already verified each certificate against
// the server's client CAs.
type Certificates struct {
	// Rules grant roles by attributes of the certificate: cn, o, ou, dns, email or uri.
	Rules Rules
	Clock clock.PassiveClock
}

// Authenticate implements Authenticator. It checks the expiry on each request, because a connection may outlive the certificate.
func (c Certificates) Authenticate(r *http.Request) (Identity, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return Identity{}, ErrNoCredentials
	}

	presented := r.TLS.VerifiedChains[0][0]
	if c.Clock.Now().After(presented.NotAfter) {
		return Identity{}, reject("The client certificate has expired.")
	}

	attributes := attributesOf(presented)

	return Identity{Name: nameIn(presented, attributes), Means: ByCertificate, Roles: c.Rules.roles(attributes), Attributes: attributes}, nil
}

// Challenge implements Authenticator. It returns an empty string, because HTTP defines no challenge for certificates.
func (Certificates) Challenge() string { return "" }

// certificateAttributes returns the names of the attributes that a rule for certificates may match.
func certificateAttributes() []string { return []string{"cn", "o", "ou", "dns", "email", "uri"} }

// attributesOf returns the values of a certificate's attributes, keyed by the names that certificateAttributes lists. An
// attribute can have several values or none.
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

// nameIn returns the client's name for logs, audit entries and rate limits. It is the common name or, if that is empty, the first
// URI, DNS name or email address of the certificate. A certificate without any of them is named by its serial number in
// hexadecimal.
func nameIn(certificate *x509.Certificate, attributes map[string][]string) string {
	for _, attribute := range []string{"cn", "uri", "dns", "email"} {
		if values := attributes[attribute]; len(values) > 0 {
			return values[0]
		}
	}

	return cmp.Or(certificate.SerialNumber.Text(16), "certificate")
}

// CheckCertificateRules returns an error for rules on attributes that certificates do not have. Such a rule would never match.
func CheckCertificateRules(rules Rules) error {
	for _, rule := range rules {
		if !slices.Contains(certificateAttributes(), rule.Attribute) {
			return fmt.Errorf("rules cannot match the certificate attribute %q: use one of %s", rule.Attribute, strings.Join(certificateAttributes(), ", "))
		}
	}

	return nil
}
