package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/reload"
)

// Server names the files of a server.
type Server struct {
	// CertFile holds the server's certificate, with those that lead to its authority behind it, KeyFile its key. Both or neither are
	// set; without them there is no TLS.
	CertFile, KeyFile string
	// ClientCAFile holds the authorities of clients' certificates. Without it clients are not asked for one.
	ClientCAFile string
}

// identity is the certificate by which this side is known, and those by which it knows the others.
type identity struct {
	certificate *tls.Certificate
	authorities *x509.CertPool
	server      *tls.Config
}

// Config returns the configuration of a server that follows its files, or nil where there is to be no TLS. A client may show a
// certificate; one that is not of the client authorities ends the connection.
func (s Server) Config(watcher *Watcher) (*tls.Config, error) {
	switch {
	case (s.CertFile == "") != (s.KeyFile == ""):
		return nil, errors.New("a certificate and its key belong together: set both files or neither")
	case s.CertFile == "" && s.ClientCAFile != "":
		return nil, errors.New("clients show certificates over TLS only: set the certificate and the key of the server too")
	case s.CertFile == "":
		return nil, nil
	}

	paths := []string{s.CertFile, s.KeyFile}
	if s.ClientCAFile != "" {
		paths = append(paths, s.ClientCAFile)
	}

	value, err := reload.Load("server certificate", serverIdentity, paths...)
	if err != nil {
		return nil, fmt.Errorf("reading the server's certificate: %w", err)
	}

	watch(watcher, value, "server")

	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return value.Get().server, nil },
	}, nil
}

func serverIdentity(contents [][]byte) (identity, error) {
	read, err := readIdentity(contents)
	if err != nil {
		return identity{}, err
	}

	read.server = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*read.certificate}, NextProtos: []string{"h2", "http/1.1"},
	}

	if read.authorities != nil {
		read.server.ClientCAs, read.server.ClientAuth = read.authorities, tls.VerifyClientCertIfGiven
	}

	return read, nil
}

// readIdentity reads a certificate, its key and, if there is a third content, authorities.
func readIdentity(contents [][]byte) (identity, error) {
	certificate, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return identity{}, fmt.Errorf("reading a certificate and its key: %w", err)
	}

	read := identity{certificate: &certificate}

	if len(contents) > 2 {
		read.authorities, err = readAuthorities(contents[2])
	}

	return read, err
}

func readAuthorities(content []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, errors.New("the file of authorities holds no certificate in PEM form")
	}

	return pool, nil
}
