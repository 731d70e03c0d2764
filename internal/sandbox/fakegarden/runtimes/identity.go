package runtimes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

const (
	certificateFile = "ca.crt"
	keyFile         = "ca.key"
	addressFile     = "address"
	anyAddress      = "127.0.0.1:0"

	folderMode = 0o700
	fileMode   = 0o600
)

// identity is how clients recognise the server.
type identity struct {
	authority []byte
	tls       *tls.Config
}

// loadIdentity takes the authority of the serving certificate from its files, or makes one the first time.
func loadIdentity(dir string) (identity, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return identity{}, fmt.Errorf("make the folder of the runtimes: %w", err)
	}
	authority, err := loadAuthority(dir)
	if errors.Is(err, fs.ErrNotExist) {
		authority, err = makeAuthority(dir)
	}
	if err != nil {
		return identity{}, fmt.Errorf("prepare the serving certificate of the runtimes: %w", err)
	}
	pair, err := authority.IssueServer("runtimes", "127.0.0.1", "localhost")
	if err != nil {
		return identity{}, err
	}
	serving, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return identity{}, fmt.Errorf("read the serving certificate of the runtimes: %w", err)
	}
	return identity{
		authority: authority.CertificatePEM(),
		tls: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{serving},
			// Which authority a client certificate needs is known only with the path of the request.
			ClientAuth: tls.RequestClientCert,
		},
	}, nil
}

func loadAuthority(dir string) (*certificate.Authority, error) {
	certificatePEM, err := os.ReadFile(filepath.Join(dir, certificateFile))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		return nil, err
	}
	return certificate.LoadAuthority(certificatePEM, keyPEM)
}

// makeAuthority writes the key first: without its certificate it is made anew.
func makeAuthority(dir string) (*certificate.Authority, error) {
	key, err := certificate.NewKey()
	if err != nil {
		return nil, err
	}
	authority, err := certificate.NewAuthority("runtimes of the local garden", key)
	if err != nil {
		return nil, err
	}
	if err := replace(filepath.Join(dir, keyFile), authority.KeyPEM()); err != nil {
		return nil, err
	}
	return authority, replace(filepath.Join(dir, certificateFile), authority.CertificatePEM())
}

// listen takes the address that was used last, if there was one and it is free.
func listen(ctx context.Context, dir string) (net.Listener, error) {
	var config net.ListenConfig
	path := filepath.Join(dir, addressFile)
	last, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the last address of the runtimes: %w", err)
	}
	if err == nil {
		if listener, err := config.Listen(ctx, "tcp", strings.TrimSpace(string(last))); err == nil {
			return listener, nil
		}
	}
	listener, err := config.Listen(ctx, "tcp", anyAddress)
	if err != nil {
		return nil, fmt.Errorf("listen for the runtimes: %w", err)
	}
	if err := replace(path, []byte(listener.Addr().String()+"\n")); err != nil {
		return nil, errors.Join(fmt.Errorf("keep the address of the runtimes: %w", err), listener.Close())
	}
	return listener, nil
}

// replace writes a file so that no crash leaves half of it.
func replace(path string, content []byte) error {
	unfinished := path + ".unfinished"
	if err := os.WriteFile(unfinished, content, fileMode); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
