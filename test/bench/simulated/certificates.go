package simulated

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync/atomic"
	"time"
)

// validity is how long certificates hold: longer than any benchmark.
const validity = 24 * time.Hour

// authority signs the certificates of the runtimes and of their administrators. Its keys are elliptic: cheap to make.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      atomic.Int64
}

// pair is a certificate with its key.
type pair struct {
	certificate []byte
	key         *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of an authority: %w", err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "simulated runtimes"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}

	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing an authority: %w", err)
	}

	template, err = x509.ParseCertificate(signed)
	if err != nil {
		return nil, fmt.Errorf("reading an authority: %w", err)
	}

	made := &authority{certificate: template, key: key}
	made.serial.Store(1)

	return made, nil
}

// issue signs a certificate for a new key.
func (a *authority) issue(name string, usage x509.ExtKeyUsage) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making the key of %s: %w", name, err)
	}

	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(a.serial.Add(1)), Subject: pkix.Name{CommonName: name, Organization: []string{"administrators"}},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("signing the certificate of %s: %w", name, err)
	}

	return pair{certificate: signed, key: key}, nil
}

// serving is how a server shows itself, and lets in those whom the authority knows.
func (a *authority) serving(own pair) *tls.Config {
	known := x509.NewCertPool()
	known.AddCert(a.certificate)

	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{own.certificate}, PrivateKey: own.key}},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    known,
	}
}

func certificatePEM(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), nil
}
