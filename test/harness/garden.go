package harness

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
)

// ServeGarden serves a fake garden on a port of the loopback interface until the test ends, for Provisioners in other processes. It
// returns the path of a kubeconfig. The garden does not authenticate its users.
func ServeGarden(tb testing.TB, garden *fakegarden.Memory) (kubeconfig string) {
	tb.Helper()

	server := httptest.NewServer(garden.Handler())
	tb.Cleanup(func() {
		server.CloseClientConnections() // watches would otherwise stay open
		server.Close()
	})

	return WriteKubeconfig(tb, server.URL)
}

// WriteKubeconfig writes a kubeconfig for the API server of a garden that does not authenticate its users, and returns its path.
func WriteKubeconfig(tb testing.TB, url string) (kubeconfig string) {
	tb.Helper()

	const name = "garden"

	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	kubeconfig = filepath.Join(tb.TempDir(), "kubeconfig")

	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		tb.Fatal(err)
	}

	return kubeconfig
}
