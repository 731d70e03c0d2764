package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"time"
)

// Pair is a certificate with its private key, both PEM. The key is a secret.
type Pair struct {
	Certificate []byte
	Key         []byte
	// NotAfter is when the certificate expires, to the second.
	NotAfter time.Time
}

// Client says whom a client certificate is for. Kubernetes reads the common name as the user and the organizations as the groups.
type Client struct {
	CommonName    string
	Organizations []string
	Validity      time.Duration
}

// IssueClient signs a client certificate for a new key.
func (a *Authority) IssueClient(client Client) (Pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: client.CommonName, Organization: client.Organizations},
		NotAfter:    time.Now().Add(client.Validity),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// IssueServer signs a serving certificate for hosts (DNS names or IP addresses); it lives as long as the authority.
func (a *Authority) IssueServer(commonName string, hosts ...string) (Pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName},
		NotAfter:    a.certificate.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(template)
}

func (a *Authority) issue(template *x509.Certificate) (Pair, error) {
	serial, err := serialNumber()
	if err != nil {
		return Pair{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generate the key of %q: %w", template.Subject.CommonName, err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-clockSkew)
	template.NotAfter = template.NotAfter.UTC().Truncate(time.Second)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %q: %w", template.Subject.CommonName, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode the key of %q: %w", template.Subject.CommonName, err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: blockECKey, Bytes: keyDER}),
		NotAfter:    template.NotAfter,
	}, nil
}
