package certificate_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

// authorities returns two CAs with the same key and the same common name.
func authorities(t *testing.T) (first, second *certificate.Authority) {
	t.Helper()
	key, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, authority := range []**certificate.Authority{&first, &second} {
		if *authority, err = certificate.NewAuthority("authority", key); err != nil {
			t.Fatal(err)
		}
	}
	return first, second
}

func parse(t *testing.T, content []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(content)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestClientIsAcceptedByItsAuthorityOnly(t *testing.T) {
	own, other := authorities(t)
	pair, err := own.IssueClient(certificate.Client{CommonName: "someone", Organizations: []string{"admins"}, Validity: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	client := parse(t, pair.Certificate)
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := client.Verify(x509.VerifyOptions{Roots: own.Pool(), KeyUsages: usage}); err != nil {
		t.Errorf("the issuing authority rejects the certificate: %v", err)
	}
	if _, err := client.Verify(x509.VerifyOptions{Roots: other.Pool(), KeyUsages: usage}); err == nil {
		t.Error("another authority accepts the certificate")
	}
	if client.Subject.CommonName != "someone" || client.Subject.Organization[0] != "admins" {
		t.Errorf("got subject %s, want someone in admins", client.Subject)
	}
	if !client.NotAfter.Equal(pair.NotAfter) || time.Until(pair.NotAfter) > time.Hour {
		t.Errorf("the certificate is valid until %s, but its pair reports %s", client.NotAfter, pair.NotAfter)
	}
}

func TestServerNamesItsHosts(t *testing.T) {
	authority, _ := authorities(t)
	pair, err := authority.IssueServer("server", "127.0.0.1", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	server := parse(t, pair.Certificate)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: authority.Pool(), DNSName: host}); err != nil {
			t.Errorf("verifying the certificate for %s: %v", host, err)
		}
	}
}

func TestAuthorityCanBeLoaded(t *testing.T) {
	authority, other := authorities(t)
	loaded, err := certificate.LoadAuthority(authority.CertificatePEM(), authority.KeyPEM())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(loaded.CertificatePEM(), authority.CertificatePEM()) || !bytes.Equal(loaded.KeyPEM(), authority.KeyPEM()) {
		t.Error("the loaded authority differs from the original")
	}
	if !strings.HasPrefix(string(authority.KeyPEM()), "-----BEGIN RSA PRIVATE KEY-----") {
		t.Error("the key is not in PKCS#1 form, which Gardener requires")
	}
	if _, err := certificate.LoadAuthority(other.KeyPEM(), other.CertificatePEM()); err == nil {
		t.Error("LoadAuthority accepted a swapped certificate and key")
	}
}
