package clusters

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/apiserver"
)

// trustWithin is how long an API server may take to reload the file with the client CAs: less than a second with file
// notifications, up to a minute without them.
const trustWithin = 90 * time.Second

// awaitTrust waits until the API server accepts client certificates that clientCA (PEM) has signed. It needs no client
// certificate, because an API server lists the accepted CAs in the TLS handshake.
func awaitTrust(ctx context.Context, server *apiserver.Server, clientCA []byte) error {
	block, _ := pem.Decode(clientCA)
	if block == nil {
		return errors.New("the client CA of the runtime is not PEM")
	}
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("parsing the client CA of the runtime: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, trustWithin)
	defer cancel()
	return server.WaitReady(ctx, func(ctx context.Context) error {
		accepted, err := acceptedAuthorities(ctx, server)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(accepted, func(subject []byte) bool { return bytes.Equal(subject, authority.RawSubject) }) {
			return fmt.Errorf("%s does not accept users of %s yet", server.URL, authority.Subject)
		}
		return nil
	})
}

// acceptedAuthorities returns the subjects (DER) of the CAs whose client certificates an API server accepts.
func acceptedAuthorities(ctx context.Context, server *apiserver.Server) ([][]byte, error) {
	address, err := url.Parse(server.URL)
	if err != nil {
		return nil, fmt.Errorf("parsing the address of an API server: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(server.CA)
	var accepted [][]byte
	dialer := &tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS12,
		RootCAs:    roots,
		GetClientCertificate: func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			accepted = request.AcceptableCAs
			return &tls.Certificate{}, nil
		},
	}}
	connection, err := dialer.DialContext(ctx, "tcp", address.Host)
	if err != nil {
		return nil, fmt.Errorf("listing the client CAs that %s accepts: %w", server.URL, err)
	}
	return accepted, connection.Close()
}
