// Package certificate issues the certificates of both gardens: the authorities of their servers and users, serving certificates
// and client certificates. Tests use it wherever they need a certificate.
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

	"github.com/environment-broker/environment-broker/internal/atomicfile"
)

const (
	keyBits           = 2048
	authorityValidity = 10 * 365 * 24 * time.Hour
	// clockSkew is the tolerance for machines whose clock is behind: certificates are valid from that much before now.
	clockSkew = time.Minute

	certificateFile = "ca.crt"
	keyFile         = "ca.key"
)

// Authority is a certificate authority. It is safe for concurrent use.
type Authority struct {
	certificate *x509.Certificate
	key         *rsa.PrivateKey
}

// NewKey generates the private key of an authority: RSA, because Gardener reads the key of a runtime's client authority as
// PKCS#1. It takes about a tenth of a second of CPU time. Authorities of one owner may share a key: each has a subject of its
// own, and a certificate is accepted only by the authority that it names as its issuer.
func NewKey() (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("generating the key of a certificate authority: %w", err)
	}
	return key, nil
}

// NewAuthority returns a self-signed authority. Its subject is unique, even if another authority has its common name and its key.
func NewAuthority(commonName string, key *rsa.PrivateKey) (*Authority, error) {
	certificate, err := sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName, SerialNumber: rand.Text()},
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

// LoadAuthority decodes an authority from PEM. It fails if the key does not belong to the certificate. The error quotes neither.
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

// OpenAuthority loads the authority in the files ca.crt and ca.key of a folder. The first time it creates both. Later calls ignore
// the common name. Two processes must not open the same folder for the first time at once.
func OpenAuthority(dir, commonName string) (*Authority, error) {
	certificatePEM, err := os.ReadFile(filepath.Join(dir, certificateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return createAuthority(dir, commonName)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the authority %q: %w", commonName, err)
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("reading the authority %q: %w", commonName, err)
	}
	return LoadAuthority(certificatePEM, keyPEM)
}

// createAuthority writes the key first: a process that dies in between leaves a key without a certificate, and the next start
// replaces it.
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

// CertificatePEM returns the certificate, which verifies everything that the authority signs.
func (a *Authority) CertificatePEM() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

// KeyPEM returns the private key in PKCS#1 form. It is a secret.
func (a *Authority) KeyPEM() []byte {
	return encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(a.key))
}

// Pool returns a pool that trusts this authority only.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Pair is a certificate with its private key, both PEM. The key is a secret.
type Pair struct {
	Certificate []byte
	Key         []byte
	// NotAfter is when the certificate expires, in whole seconds.
	NotAfter time.Time
}

// Client is the subject of a client certificate. Kubernetes reads the common name as the user and the organizations as the
// groups.
type Client struct {
	CommonName    string
	Organizations []string
	Validity      time.Duration
}

// IssueClient signs a client certificate for a new key. There is no list of revoked certificates: a certificate is valid until its
// expiry, or until the server trusts another authority.
func (a *Authority) IssueClient(client Client) (Pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: client.CommonName, Organization: client.Organizations},
		NotAfter:    time.Now().Add(client.Validity),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// IssueServer signs a serving certificate for hosts (DNS names or IP addresses). It expires with the authority, after ten years, so no
// garden needs to renew it.
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

// issue signs a certificate for a new elliptic-curve key, which takes well under a millisecond: each admin kubeconfig has a key
// of its own.
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

// sign signs a certificate for the key with the key of the issuer; without an issuer it is self-signed. It sets the start of the
// validity. x509 chooses the serial number and, for an authority, the ID of the key.
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
