package apiserver

import (
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

// clientValidity is long because developers copy kubeconfigs and use them for months.
const clientValidity = 365 * 24 * time.Hour

// Certificates is a folder that contains a CA and the certificate files of servers. The CA is created once, so that clients trust
// the server after a restart. Certificates are issued again at each start.
type Certificates struct {
	path      string
	authority *certificate.Authority
}

// Files contains the paths of a certificate and its private key, both in PEM.
type Files struct {
	Certificate string
	Key         string
}

// OpenCertificates loads the CA in a folder. If there is none, it creates the folder and a CA with the given common name.
func OpenCertificates(path, commonName string) (*Certificates, error) {
	authority, err := certificate.OpenAuthority(path, commonName)
	if err != nil {
		return nil, err
	}
	return &Certificates{path: path, authority: authority}, nil
}

// Path returns the path of a file in the folder. The file need not exist.
func (c *Certificates) Path(name string) string { return filepath.Join(c.path, name) }

// CA returns the certificate of the CA, in PEM.
func (c *Certificates) CA() []byte { return c.authority.CertificatePEM() }

// Authority returns the files of the CA itself. Its key also signs ServiceAccount tokens.
func (c *Certificates) Authority() Files { return c.files("ca") }

// Server issues a serving certificate for the given hosts and writes the certificate and its key to files with the given name.
func (c *Certificates) Server(name string, hosts ...string) (Files, error) {
	pair, err := c.authority.IssueServer(name, hosts...)
	if err != nil {
		return Files{}, err
	}
	return c.write(name, pair)
}

// Client issues a client certificate for a user and groups and writes the certificate and its key to files that are named after
// the user.
func (c *Certificates) Client(user string, groups ...string) (Files, error) {
	pair, err := c.issueClient(user, groups)
	if err != nil {
		return Files{}, err
	}
	return c.write(user, pair)
}

// TLS issues a client certificate for a user and groups and returns a client configuration with the certificate and the CA. It
// does not write any files.
func (c *Certificates) TLS(user string, groups ...string) (rest.TLSClientConfig, error) {
	pair, err := c.issueClient(user, groups)
	if err != nil {
		return rest.TLSClientConfig{}, err
	}
	return rest.TLSClientConfig{CAData: c.CA(), CertData: pair.Certificate, KeyData: pair.Key}, nil
}

func (c *Certificates) issueClient(user string, groups []string) (certificate.Pair, error) {
	return c.authority.IssueClient(certificate.Client{CommonName: user, Organizations: groups, Validity: clientValidity})
}

func (c *Certificates) files(name string) Files {
	return Files{Certificate: c.Path(name + ".crt"), Key: c.Path(name + ".key")}
}

// write writes the key before the certificate, because a server that starts in between could not use a certificate without its
// key.
func (c *Certificates) write(name string, pair certificate.Pair) (Files, error) {
	files := c.files(name)
	if err := atomicfile.Write(files.Key, pair.Key); err != nil {
		return Files{}, err
	}
	return files, atomicfile.Write(files.Certificate, pair.Certificate)
}

// WriteKubeconfig writes a kubeconfig with the server, CA and client certificate of a configuration. The kubeconfig has one
// context, which uses the given namespace; namespace may be empty.
func WriteKubeconfig(path string, config *rest.Config, namespace string) error {
	const name = "garden"
	file := clientcmdapi.NewConfig()
	file.CurrentContext = name
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	content, err := clientcmd.Write(*file)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	return atomicfile.Write(path, content)
}
