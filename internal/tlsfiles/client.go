package tlsfiles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/reload"
)

// handshakeTimeout is that of the standard transport.
const handshakeTimeout = 10 * time.Second

// Client names the files of a client.
type Client struct {
	// CAFile holds the authorities of the server's certificate. Without it those of the system count.
	CAFile string
	// CertFile and KeyFile are the certificate that the client shows, and its key. Both or neither are set.
	CertFile, KeyFile string
}

// Config returns the configuration of a client that follows its files, or nil where no file is named: then the standard does.
// The use names the client in the metric of expiry times.
func (c Client) Config(watcher *Watcher, use string) (*tls.Config, error) {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("a certificate and its key belong together: set both files or neither")
	}

	if c.CAFile == "" && c.CertFile == "" {
		return nil, nil
	}

	config := &tls.Config{MinVersion: tls.VersionTLS12}

	if c.CertFile != "" {
		value, err := reload.Load(use+" certificate", readIdentity, c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate for the %s: %w", use, err)
		}

		watch(watcher, value, use)

		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return value.Get().certificate, nil
		}
	}

	if c.CAFile != "" {
		value, err := reload.Load(use+" authorities", func(contents [][]byte) (*x509.CertPool, error) {
			return readAuthorities(contents[0])
		}, c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the authorities of the %s: %w", use, err)
		}

		reload.Watch(watcher.files, value, nil)

		// The pool of a configuration cannot be exchanged. So the check that is left out here is made below, with the pool of the moment.
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(state tls.ConnectionState) error { return verify(state, value.Get()) }
	}

	return config, nil
}

// verify checks the server's certificate as crypto/tls does by itself. Of a server that is dialed by its address a state tells no name.
func verify(state tls.ConnectionState, authorities *x509.CertPool) error {
	switch {
	case len(state.PeerCertificates) == 0:
		return errors.New("the server shows no certificate")
	case state.ServerName == "":
		return errors.New("it is not known for whom the server's certificate has to be: use the name of the server, not its address")
	}

	options := x509.VerifyOptions{Roots: authorities, DNSName: state.ServerName, Intermediates: x509.NewCertPool()}
	for _, certificate := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(certificate)
	}

	if _, err := state.PeerCertificates[0].Verify(options); err != nil {
		return fmt.Errorf("checking the server's certificate: %w", err)
	}

	return nil
}

// Transport returns the standard transport with the configuration, if any.
func Transport(config *tls.Config) *http.Transport {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: new(net.Dialer).DialContext}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		transport = standard.Clone()
	}

	transport.ForceAttemptHTTP2 = true

	if config != nil {
		transport.TLSClientConfig = config
	}

	if config != nil && config.VerifyConnection != nil {
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, transport.DialContext, network, address, config)
		}
	}

	return transport
}

// dial has the check of the configuration know the host also where that is an address.
func dial(ctx context.Context, plain func(ctx context.Context, network, address string) (net.Conn, error), network, address string,
	config *tls.Config,
) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dialing %s: %w", address, err)
	}

	line, err := plain(ctx, network, address)
	if err != nil {
		return nil, err //nolint:wrapcheck // the transport's own errors
	}

	own := config.Clone()
	own.ServerName, own.NextProtos = host, []string{"h2", "http/1.1"}
	own.VerifyConnection = func(state tls.ConnectionState) error {
		state.ServerName = host

		return config.VerifyConnection(state)
	}

	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()

	secure := tls.Client(line, own)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, line.Close())
	}

	return secure, nil
}
