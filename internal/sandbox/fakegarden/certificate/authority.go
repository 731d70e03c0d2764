package certificate

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	keyBits           = 2048
	authorityValidity = 10 * 365 * 24 * time.Hour
	// clockSkew is how far in the past certificates begin, for machines whose clocks differ a little.
	clockSkew = time.Minute

	blockCertificate = "CERTIFICATE"
	blockRSAKey      = "RSA PRIVATE KEY"
	blockECKey       = "EC PRIVATE KEY"
)

// Authority is a certificate authority. It is safe for concurrent use.
type Authority struct {
	certificate *x509.Certificate
	key         *rsa.PrivateKey
}

// NewKey makes the private key of an authority. It costs about a tenth of a second of CPU, so authorities that are kept by the same
// owner may share a key: each has a subject of its own, and a certificate is accepted only by the authority that it names as its
// issuer.
//
// The key is RSA because Gardener reads the key of a runtime's client authority in PKCS#1, which knows nothing else.
func NewKey() (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("generate the key of a certificate authority: %w", err)
	}
	return key, nil
}

// NewAuthority makes a self-signed authority. Its subject differs from that of every other authority, also of one with the same
// common name and key.
func NewAuthority(commonName string, key *rsa.PrivateKey) (*Authority, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName, SerialNumber: serial.Text(16)},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityValidity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate authority %q: %w", commonName, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority %q back: %w", commonName, err)
	}
	return &Authority{certificate: certificate, key: key}, nil
}

// LoadAuthority reads an authority from its PEM blocks; the key is in PKCS#1 form.
func LoadAuthority(certificatePEM, keyPEM []byte) (*Authority, error) {
	certificateBlock, _ := pem.Decode(certificatePEM)
	if certificateBlock == nil || certificateBlock.Type != blockCertificate {
		return nil, errors.New("the certificate of the authority is not a PEM certificate")
	}
	certificate, err := x509.ParseCertificate(certificateBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse the certificate of the authority: %w", err)
	}
	keyBlock, _ := pem.Decode(keyPEM)
	if keyBlock == nil || keyBlock.Type != blockRSAKey {
		return nil, errors.New("the key of the authority is not an RSA key in PKCS#1 PEM form")
	}
	key, err := x509.ParsePKCS1PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse the key of the authority: %w", err)
	}
	return &Authority{certificate: certificate, key: key}, nil
}

// CertificatePEM returns the certificate that those need who verify what the authority signed.
func (a *Authority) CertificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: a.certificate.Raw})
}

// KeyPEM returns the private key in PKCS#1 form. It is a secret.
func (a *Authority) KeyPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: blockRSAKey, Bytes: x509.MarshalPKCS1PrivateKey(a.key)})
}

// Pool returns a pool that trusts this authority only.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

func serialNumber() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw the serial number of a certificate: %w", err)
	}
	return serial, nil
}
