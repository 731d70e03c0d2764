package reload

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
)

var errHalfPair = errors.New("a certificate and its key belong together: set both files or neither")

// ServerTLS names the files of a TLS server. If all fields are empty, the server uses plain HTTP.
type ServerTLS struct {
	// CertFile contains the certificate of the server, followed by the intermediate certificates; KeyFile contains the key. Set
	// both or neither. Without them, the server uses plain HTTP.
	CertFile, KeyFile string
	// ClientCAFile contains the CA certificates that verify client certificates. Without it, the server does not request client
	// certificates.
	ClientCAFile string
}

// identity is a certificate with its key. server is the TLS configuration with this certificate; it is nil for a client.
type identity struct {
	certificate *tls.Certificate
	server      *tls.Config
}

// Config returns a TLS configuration, or nil if no certificate is set. The watcher reloads the files, and new connections use the
// latest valid files. Clients can connect without a certificate, because other kinds of credentials exist. The handshake fails if
// a client presents a certificate that the client CAs have not signed.
func (s ServerTLS) Config(watcher *Watcher) (*tls.Config, error) {
	switch {
	case (s.CertFile == "") != (s.KeyFile == ""):
		return nil, errHalfPair
	case s.CertFile == "" && s.ClientCAFile != "":
		return nil, errors.New("client certificates require TLS: also set the certificate and the key of the server")
	case s.CertFile == "":
		return nil, nil
	}

	paths := []string{s.CertFile, s.KeyFile}
	if s.ClientCAFile != "" {
		paths = append(paths, s.ClientCAFile)
	}

	value, err := Load("server certificate", serverIdentity, paths...)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the server: %w", err)
	}

	watchIdentity(watcher, value, "server")

	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return value.Get().server, nil },
	}, nil
}

// serverIdentity parses a certificate, its key and, as an optional third file, the client CAs. The three files form one value, so
// a handshake never combines an old certificate with new CAs.
func serverIdentity(contents [][]byte) (identity, error) {
	parsed, err := clientIdentity(contents)
	if err != nil {
		return identity{}, err
	}

	parsed.server = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*parsed.certificate}, NextProtos: []string{"h2", "http/1.1"},
	}

	if len(contents) > 2 {
		parsed.server.ClientAuth = tls.VerifyClientCertIfGiven
		parsed.server.ClientCAs, err = authorities(contents[2:])
	}

	return parsed, err
}

// clientIdentity parses the contents of two files: a certificate and its key.
func clientIdentity(contents [][]byte) (identity, error) {
	certificate, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return identity{}, fmt.Errorf("reading a certificate and its key: %w", err)
	}

	return identity{certificate: &certificate}, nil
}

// authorities parses a file of CA certificates in PEM format.
func authorities(contents [][]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(contents[0]) {
		return nil, errors.New("the file with the CA certificates contains no PEM certificate")
	}

	return pool, nil
}

// watchIdentity adds a certificate to the watcher and sets the metric of the certificate's expiry. use is the value of the
// metric's use label.
func watchIdentity(watcher *Watcher, value *Value[identity], use string) {
	Watch(watcher, value, func(used identity) {
		watcher.expiry.WithLabelValues(use).Set(float64(used.certificate.Leaf.NotAfter.Unix()))
	})
}

// ClientTLS configures TLS for an HTTP client. With the zero value, the client trusts the CAs of the system and does not present
// a certificate.
type ClientTLS struct {
	// CAFile contains the CA certificates that verify the server's certificate. If CAFile is set, the CAs of the system are not
	// trusted.
	CAFile string
	// CertFile and KeyFile contain the certificate that the client presents and its key. Set both or neither.
	CertFile, KeyFile string
	// SkipVerify accepts any server certificate. Set it only if the operator of the service explicitly requests it.
	SkipVerify bool
	// IdleConnections is the number of idle connections that the client keeps per host; 0 is the default of net/http.
	IdleConnections int
}

// Transport is an HTTP transport that reloads its certificate files. A new client certificate is used from the next handshake on.
// The CAs of a tls.Config in use cannot be replaced, so new CAs replace the whole inner transport: the idle connections of the
// old transport are closed, and requests in progress complete on their connections.
type Transport struct {
	inner atomic.Pointer[http.Transport]
}

// Transport returns a transport whose files the watcher reloads. use is the name of the called system in errors, metrics and
// logs.
func (c ClientTLS) Transport(watcher *Watcher, use string) (*Transport, error) {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errHalfPair
	}

	base, config := standardTransport(), &tls.Config{MinVersion: tls.VersionTLS12}
	config.InsecureSkipVerify = c.SkipVerify
	base.TLSClientConfig, base.ForceAttemptHTTP2 = config, true

	if c.IdleConnections > 0 {
		base.MaxIdleConnsPerHost, base.MaxIdleConns = c.IdleConnections, 0
	}

	if c.CertFile != "" {
		value, err := Load(use+" certificate", clientIdentity, c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate for the %s: %w", use, err)
		}

		watchIdentity(watcher, value, use)

		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return value.Get().certificate, nil
		}
	}

	transport := &Transport{}
	transport.inner.Store(base)

	if c.CAFile != "" {
		value, err := Load(use+" authorities", authorities, c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the CA certificates for the %s: %w", use, err)
		}

		Watch(watcher, value, transport.trust)
	}

	return transport, nil
}

// trust replaces the CAs. Two replacements never overlap: Watch calls trust once, and after that only the watcher's goroutine
// calls it.
func (t *Transport) trust(roots *x509.CertPool) {
	next := t.inner.Load().Clone()
	next.TLSClientConfig.RootCAs = roots
	t.inner.Swap(next).CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper. Each request uses the inner transport that is current when the request starts.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	return t.inner.Load().RoundTrip(request)
}

// TLSConfig returns a copy of the current configuration, for connections other than HTTP.
func (t *Transport) TLSConfig() *tls.Config { return t.inner.Load().TLSClientConfig.Clone() }

// CloseIdleConnections closes the connections without a request in progress.
func (t *Transport) CloseIdleConnections() { t.inner.Load().CloseIdleConnections() }

// standardTransport returns a copy of the default transport of net/http, with its proxy settings and timeouts.
func standardTransport() *http.Transport {
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		return standard.Clone()
	}

	return &http.Transport{Proxy: http.ProxyFromEnvironment}
}
