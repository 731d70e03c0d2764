package certdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/atomicfile"
)

const (
	authorityName = "ca"
	// clientValidity is long because copies of a kubeconfig are made and kept.
	clientValidity = 365 * 24 * time.Hour
)

// Dir is a folder with an authority.
type Dir struct {
	path      string
	authority *certificate.Authority
}

// Files are a certificate and its private key, both PEM.
type Files struct {
	Certificate string
	Key         string
}

// Open reads the authority of a folder; the first time it makes both.
func Open(path, commonName string) (*Dir, error) {
	d := &Dir{path: path}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the authority %q: %w", commonName, err)
	}
	err := d.load()
	if errors.Is(err, os.ErrNotExist) {
		err = d.create(commonName)
	}
	if err != nil {
		return nil, fmt.Errorf("open the authority %q in %s: %w", commonName, path, err)
	}
	return d, nil
}

func (d *Dir) load() error {
	certificatePEM, err := os.ReadFile(d.Authority().Certificate)
	if err != nil {
		return err
	}
	keyPEM, err := os.ReadFile(d.Authority().Key)
	if err != nil {
		return err
	}
	d.authority, err = certificate.LoadAuthority(certificatePEM, keyPEM)
	return err
}

func (d *Dir) create(commonName string) error {
	key, err := certificate.NewKey()
	if err != nil {
		return err
	}
	if d.authority, err = certificate.NewAuthority(commonName, key); err != nil {
		return err
	}
	_, err = d.write(authorityName, certificate.Pair{Certificate: d.authority.CertificatePEM(), Key: d.authority.KeyPEM()})
	return err
}

// Path returns the path of a file in the folder.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, name) }

// CA returns the certificate of the authority, PEM.
func (d *Dir) CA() []byte { return d.authority.CertificatePEM() }

// Authority returns the files of the authority itself.
func (d *Dir) Authority() Files { return d.files(authorityName) }

// Server signs a serving certificate for hosts.
func (d *Dir) Server(name string, hosts ...string) (Files, error) {
	pair, err := d.authority.IssueServer(name, hosts...)
	if err != nil {
		return Files{}, err
	}
	return d.write(name, pair)
}

// Client signs a client certificate for a user, who is in the groups.
func (d *Dir) Client(user string, groups ...string) (Files, error) {
	pair, err := d.issueClient(user, groups)
	if err != nil {
		return Files{}, err
	}
	return d.write(user, pair)
}

// TLS signs a client certificate and returns what a client needs that talks as the user to a server of this authority.
func (d *Dir) TLS(user string, groups ...string) (rest.TLSClientConfig, error) {
	pair, err := d.issueClient(user, groups)
	if err != nil {
		return rest.TLSClientConfig{}, err
	}
	return rest.TLSClientConfig{CAData: d.CA(), CertData: pair.Certificate, KeyData: pair.Key}, nil
}

func (d *Dir) issueClient(user string, groups []string) (certificate.Pair, error) {
	return d.authority.IssueClient(certificate.Client{CommonName: user, Organizations: groups, Validity: clientValidity})
}

func (d *Dir) files(name string) Files {
	return Files{Certificate: d.Path(name + ".crt"), Key: d.Path(name + ".key")}
}

// write puts the certificate last: where it is, the key is too, even if the process dies between the two.
func (d *Dir) write(name string, pair certificate.Pair) (Files, error) {
	files := d.files(name)
	if err := atomicfile.Write(files.Key, pair.Key); err != nil {
		return Files{}, err
	}
	return files, atomicfile.Write(files.Certificate, pair.Certificate)
}
