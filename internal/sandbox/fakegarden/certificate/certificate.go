// Package certificate issues certificates for both gardens and for tests: CA certificates, serving certificates and client
// certificates.
package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
)

const (
	keyBits           = 2048
	authorityValidity = 10 * 365 * 24 * time.Hour
	// clockSkew is how far NotBefore lies before the signing time, because the clocks of other machines may be behind.
	clockSkew = time.Minute

	certificateFile = "ca.crt"
	keyFile         = "ca.key"
)

// Authority is a certificate authority. It is safe for concurrent use.
type Authority struct {
	certificate *x509.Certificate
	key         *rsa.PrivateKey
}

// NewKey generates a private key for an Authority. It is an RSA key, because Gardener reads the key of a runtime's client CA as
// PKCS#1. Generating a key takes about 0.1 seconds of CPU time. Several CAs can share a key: each has a unique subject, and a
// certificate is verified only with the CA that it names as its issuer.
func NewKey() (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("generating the key of a certificate authority: %w", err)
	}
	return key, nil
}

// uniqueLength is the number of random characters, of five bits each, that make the subject of a CA unique. It is small, because
// a server lists the subjects of all CAs in each TLS handshake, and this list is limited to 64 KiB.
const uniqueLength = 10

// NewAuthority returns a self-signed Authority. Its subject is unique, even if another Authority has the same common name and
// key.
func NewAuthority(commonName string, key *rsa.PrivateKey) (*Authority, error) {
	certificate, err := sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName, SerialNumber: rand.Text()[:uniqueLength]},
		NotAfter:              time.Now().Add(authorityValidity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}, nil, key, key)
	if err != nil {
		return nil, err
	}
	return &Authority{certificate: certificate, key: key}, nil
}

// LoadAuthority decodes an Authority from PEM. It fails if the key does not belong to the certificate. The error does not quote
// the certificate or the key.
func LoadAuthority(certificatePEM, keyPEM []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(certificatePEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("decoding a certificate authority: %w", err)
	}
	key, ok := pair.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("decoding a certificate authority: the key is %T, want RSA", pair.PrivateKey)
	}
	return &Authority{certificate: pair.Leaf, key: key}, nil
}

// OpenAuthority loads an Authority from the files ca.crt and ca.key in dir. If they do not exist, it creates an Authority with
// the given common name and writes the files; otherwise it ignores commonName. Two processes must not create the same authority
// concurrently.
func OpenAuthority(dir, commonName string) (*Authority, error) {
	certificatePEM, err := os.ReadFile(filepath.Join(dir, certificateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return createAuthority(dir, commonName)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority %q: %w", commonName, err)
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority %q: %w", commonName, err)
	}
	return LoadAuthority(certificatePEM, keyPEM)
}

// createAuthority writes the key before the certificate. If the process dies in between, there is a key without a certificate,
// and the next start replaces the key.
func createAuthority(dir, commonName string) (*Authority, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	authority, err := NewAuthority(commonName, key)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(filepath.Join(dir, keyFile), authority.KeyPEM()); err != nil {
		return nil, err
	}
	return authority, atomicfile.Write(filepath.Join(dir, certificateFile), authority.CertificatePEM())
}

// CertificatePEM returns the authority's certificate, which verifies the certificates that the authority has signed.
func (a *Authority) CertificatePEM() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

// KeyPEM returns the private key in PKCS#1 form. The result is a secret.
func (a *Authority) KeyPEM() []byte {
	return encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(a.key))
}

// Pool returns a pool that trusts only this authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Pair is a certificate with its private key, both in PEM. The key is a secret.
type Pair struct {
	Certificate []byte
	Key         []byte
	// NotAfter is when the certificate expires, truncated to whole seconds.
	NotAfter time.Time
}

// Client is the subject of a client certificate. Kubernetes reads the common name as the user and the organizations as groups.
type Client struct {
	CommonName    string
	Organizations []string
	Validity      time.Duration
}

// IssueClient signs a client certificate for a new key. Certificates cannot be revoked: a certificate is valid until it expires
// or the server no longer trusts the authority.
func (a *Authority) IssueClient(client Client) (Pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: client.CommonName, Organization: client.Organizations},
		NotAfter:    time.Now().Add(client.Validity),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// IssueServer signs a serving certificate for hosts (DNS names or IP addresses). It expires together with the authority, after
// ten years, so gardens never renew it.
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

// issue signs a certificate for a new elliptic-curve key. This takes less than a millisecond, so each admin kubeconfig can have a
// new key.
func (a *Authority) issue(template *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generating the key of %q: %w", template.Subject.CommonName, err)
	}
	template.NotAfter = template.NotAfter.UTC().Truncate(time.Second)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	signed, err := sign(template, a.certificate, key, a.key)
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the key of %q: %w", template.Subject.CommonName, err)
	}
	return Pair{Certificate: encode("CERTIFICATE", signed.Raw), Key: encode("EC PRIVATE KEY", der), NotAfter: template.NotAfter}, nil
}

// sign signs a certificate for key. signer is the key of the issuer; if issuer is nil, the certificate is self-signed. sign sets
// the start of the validity; x509 chooses the serial number and, for an authority, the key ID.
func sign(template, issuer *x509.Certificate, key, signer crypto.Signer) (*x509.Certificate, error) {
	template.NotBefore = time.Now().Add(-clockSkew)
	if issuer == nil {
		issuer = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %q: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
