package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
)

const (
	// StartTimeout limits how long a kube-apiserver or an etcd may take to start or to stop. It is long, because the machine may
	// compile other tests at the same time.
	StartTimeout = 4 * time.Minute
	// CRDs is the folder of the bundle provisioner's CustomResourceDefinitions.
	CRDs = "resources/crds"
	// binaries is the folder of the programs that `make garden` builds.
	binaries = ".bin"
)

// New returns an API server with an etcd, which are not started. Its start installs the CustomResourceDefinitions of the folders,
// whose paths are relative to the repository's root.
func New(crds ...string) (*envtest.Environment, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}

	environment := &envtest.Environment{
		BinaryAssetsDirectory:    filepath.Join(root, binaries),
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: StartTimeout,
		ControlPlaneStopTimeout:  StartTimeout,
	}
	for _, folder := range crds {
		environment.CRDDirectoryPaths = append(environment.CRDDirectoryPaths, filepath.Join(root, folder))
	}

	if environment.ControlPlane.Etcd, err = Etcd(); err != nil {
		return nil, err
	}

	environment.ControlPlane.APIServer, err = Server()

	return environment, err
}

// Etcd returns an etcd that is not started. Its ports are drawn, because envtest starts a program that fails only with the same
// ports again, and an outgoing connection can use a port that envtest suggests.
func Etcd() (*envtest.Etcd, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}

	clients, err := freeport.Draw(context.Background())
	if err != nil {
		return nil, err
	}

	peers, err := freeport.Draw(context.Background())
	if err != nil {
		return nil, err
	}

	etcd := &envtest.Etcd{
		Path: filepath.Join(root, binaries, "etcd"), URL: &url.URL{Scheme: "http", Host: freeport.Address(clients)},
		StartTimeout: StartTimeout, StopTimeout: StartTimeout,
	}
	etcd.Configure().Set("listen-peer-urls", "http://"+freeport.Address(peers))

	return etcd, nil
}

// Server returns an API server that is not started. Its port is random, as for Etcd. The caller sets the URL of its etcd.
func Server() (*envtest.APIServer, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}

	port, err := freeport.Draw(context.Background())
	if err != nil {
		return nil, err
	}

	server := &envtest.APIServer{
		Path: filepath.Join(root, binaries, "kube-apiserver"), StartTimeout: StartTimeout, StopTimeout: StartTimeout,
	}
	server.Address, server.Port = "127.0.0.1", strconv.Itoa(port)

	return server, nil
}

// Run starts an API server as New describes, and stops it when the test ends. Its clients have no limit of requests per second.
func Run(tb testing.TB, crds ...string) *envtest.Environment {
	tb.Helper()

	environment, err := start(crds)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			tb.Errorf("stopping the kube-apiserver: %v", err)
		}
	})

	return environment
}

// Main starts an API server as New describes, stores its configuration in config, runs the tests of a package and stops the API
// server. It returns the exit code.
func Main(m *testing.M, config **rest.Config, crds ...string) int {
	environment, err := start(crds)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	*config = environment.Config
	code := m.Run()

	if err := environment.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stopping the kube-apiserver: %v\n", err)

		return 1
	}

	return code
}

func start(crds []string) (*envtest.Environment, error) {
	environment, err := New(crds...)
	if err != nil {
		return nil, err
	}

	config, err := environment.Start()
	if err != nil {
		return nil, fmt.Errorf("starting the kube-apiserver in .bin, which `make garden` builds: %w", err)
	}

	config.QPS = -1

	return environment, nil
}

// Kubeconfig returns a kubeconfig with the address and the client certificate from a configuration.
func Kubeconfig(tb testing.TB, config *rest.Config) []byte {
	tb.Helper()

	text, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
	})
	if err != nil {
		tb.Fatal(err)
	}

	return text
}

// repository returns the repository's root folder, which contains go.mod. It searches upward from the current folder, because
// tests run in the folder of their package.
func repository() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for the repository: %w", err)
	}

	for ; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}

		if folder == filepath.Dir(folder) {
			return "", errors.New("no go.mod in this folder or its parents")
		}
	}
}
