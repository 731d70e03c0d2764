package service

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
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const (
	// certificateFile is the name of the file with the self-signed certificate, in the folder of the store.
	certificateFile = "tls.crt"
	// renewalTime is how long an existing certificate must still be valid when the service starts. Otherwise, the service creates a
	// new one.
	renewalTime = 30 * 24 * time.Hour
)

// selfSigned returns the paths of the self-signed certificate in the folder and of its key. If the folder has no certificate for
// the host of externalAddress, or if its certificate expires within 30 days, selfSigned writes a new certificate and key, which
// are valid for a year. A restart thus keeps the certificate, and clients that trust it continue to work. A running service does
// not renew it.
func selfSigned(folder, externalAddress string) (certFile, keyFile string, err error) {
	address, err := url.Parse(externalAddress)
	if err != nil {
		return "", "", fmt.Errorf("APP_EXTERNAL_ADDRESS: %w", err)
	}

	certFile, keyFile = filepath.Join(folder, certificateFile), filepath.Join(folder, "tls.key")

	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil &&
		pair.Leaf.VerifyHostname(address.Hostname()) == nil && time.Until(pair.Leaf.NotAfter) > renewalTime {
		return certFile, keyFile, nil
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("creating a key: %w", err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: address.Hostname()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(address.Hostname()); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{address.Hostname()}
	}

	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return "", "", fmt.Errorf("creating a certificate: %w", err)
	}

	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", "", fmt.Errorf("encoding a key: %w", err)
	}

	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: certificate}, keyFile: {Type: "PRIVATE KEY", Bytes: encoded},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			return "", "", fmt.Errorf("writing a certificate: %w", err)
		}
	}

	return certFile, keyFile, nil
}
