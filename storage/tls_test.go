package storage_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/environment-broker/environment-broker/storage"
)

// TestRootCertificate checks which server certificates Open trusts, for each SSL mode and root certificate. The server performs
// the TLS handshake of PostgreSQL and then closes the connection.
func TestRootCertificate(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()

	authorities := filepath.Join(t.TempDir(), "authorities.pem")

	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(authorities, text, 0o600); err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason, mode, authorities string
		trusts                    bool
	}{
		"named":   {"a certificate of the configured root is trusted", "verify-full", authorities, true},
		"unnamed": {"a certificate of another root is rejected", "verify-full", "", false},
		"require": {"without verification, any certificate is accepted", "require", "", true},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			port, handshake := showCertificate(t, &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12})

			db, err := storage.Open(t.Context(), storage.Config{
				Driver: storage.DriverPostgres, User: "u", Password: "p", Host: "127.0.0.1", Port: strconv.Itoa(port), Name: "n",
				SSLMode: c.mode, SSLRootCert: c.authorities,
			})
			if err == nil {
				_ = db.Close()

				t.Fatal("want an error, because the server closes every connection")
			}

			if trusted := <-handshake == nil; trusted != c.trusts {
				t.Errorf("%s: the server was trusted: %t; %v", c.reason, trusted, err)
			}
		})
	}
}

// showCertificate runs a server that accepts one connection, presents the certificate, and sends the error of the TLS handshake
// to the channel.
func showCertificate(t *testing.T, config *tls.Config) (port int, handshake <-chan error) {
	t.Helper()

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	results := make(chan error, 1)

	go func() {
		defer listener.Close()

		connection, err := listener.Accept()
		if err != nil {
			results <- err

			return
		}
		defer connection.Close()

		request := make([]byte, 8)
		if _, err := io.ReadFull(connection, request); err != nil {
			results <- err

			return
		}

		if _, err := connection.Write([]byte("S")); err != nil {
			results <- err

			return
		}

		secured := tls.Server(connection, config)

		// With TLS 1.3 the server learns whether the client trusts its certificate only from the first read after the
		// handshake.
		err = secured.HandshakeContext(context.WithoutCancel(t.Context()))
		if err == nil {
			_, err = io.ReadFull(secured, request)
		}

		results <- err
	}()

	address, isTCP := listener.Addr().(*net.TCPAddr)
	if !isTCP {
		t.Fatalf("the server listens on %s", listener.Addr())
	}

	return address.Port, results
}
