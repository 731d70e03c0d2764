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

// ServerTLS names the files of a TLS server. All fields empty means plain HTTP.
type ServerTLS struct {
	// CertFile holds the certificate of the server, followed by its intermediates; KeyFile holds its key. Set both or neither: without
	// them the server speaks plain HTTP.
	CertFile, KeyFile string
	// ClientCAFile holds the authorities of client certificates. Without it the server does not ask clients for certificates.
	ClientCAFile string
}

// identity is a certificate with its key. For a server, it also has the TLS configuration that uses the certificate.
type identity struct {
	certificate *tls.Certificate
	server      *tls.Config
}

// Config returns a TLS configuration whose files the watcher follows, or nil if no certificate is set. New connections use the newest valid
// files. Clients may connect without a certificate, because other kinds of credentials exist; a certificate that the client authorities have
// not signed ends the handshake.
func (s ServerTLS) Config(watcher *Watcher) (*tls.Config, error) {
	switch {
	case (s.CertFile == "") != (s.KeyFile == ""):
		return nil, errHalfPair
	case s.CertFile == "" && s.ClientCAFile != "":
		return nil, errors.New("clients present certificates over TLS only: set the certificate and the key of the server too")
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

// serverIdentity parses a certificate, its key and, as an optional third file, the client authorities. The three files are one value, so that a
// handshake never combines an old certificate with new authorities.
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

// clientIdentity parses a certificate and its key.
func clientIdentity(contents [][]byte) (identity, error) {
	certificate, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return identity{}, fmt.Errorf("reading a certificate and its key: %w", err)
	}

	return identity{certificate: &certificate}, nil
}

// authorities parses a file of CA certificates in PEM form.
func authorities(contents [][]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(contents[0]) {
		return nil, errors.New("the file of authorities holds no certificate in PEM form")
	}

	return pool, nil
}

// watchIdentity follows a certificate and sets the metric of its expiry, with the use as the label.
func watchIdentity(watcher *Watcher, value *Value[identity], use string) {
	Watch(watcher, value, func(used identity) {
		watcher.expiry.WithLabelValues(use).Set(float64(used.certificate.Leaf.NotAfter.Unix()))
	})
}

// ClientTLS configures the TLS side of an HTTP client. The zero value trusts the authorities of the system and presents no certificate.
type ClientTLS struct {
	// CAFile holds the authorities of the server's certificate, in place of those of the system.
	CAFile string
	// CertFile and KeyFile hold the certificate that the client presents, and its key. Set both or neither.
	CertFile, KeyFile string
	// SkipVerify accepts any server certificate. Set it only if the operator of the service asks for it.
	SkipVerify bool
	// IdleConnections is the number of idle connections that the client keeps per host; 0 is the default of net/http.
	IdleConnections int
}

// Transport is an HTTP transport that follows its files. The next handshake presents a new client certificate. The authorities of a
// tls.Config in use cannot be replaced, so new authorities replace the whole inner transport: its idle connections are closed, and requests
// in progress complete on their connections.
type Transport struct {
	inner atomic.Pointer[http.Transport]
}

// Transport returns a transport whose files the watcher follows. The use is the name of the called system in errors, metrics and logs.
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
			return nil, fmt.Errorf("reading the authorities of the %s: %w", use, err)
		}

		Watch(watcher, value, transport.trust)
	}

	return transport, nil
}

// trust replaces the authorities. Only the goroutine of the watcher calls trust, so two replacements never overlap.
func (t *Transport) trust(roots *x509.CertPool) {
	next := t.inner.Load().Clone()
	next.TLSClientConfig.RootCAs = roots
	t.inner.Swap(next).CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper. Each request uses the inner transport of its start.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	return t.inner.Load().RoundTrip(request)
}

// CloseIdleConnections closes the connections without a request in progress.
func (t *Transport) CloseIdleConnections() { t.inner.Load().CloseIdleConnections() }

// standardTransport returns a copy of the default transport of net/http, with its proxy settings and timeouts.
func standardTransport() *http.Transport {
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		return standard.Clone()
	}

	return &http.Transport{Proxy: http.ProxyFromEnvironment}
}
