package harness

import (
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// RuntimeConfig returns the client configuration in a kubeconfig. An invalid kubeconfig fails the test.
func RuntimeConfig(r Reporter, kubeconfig []byte) *rest.Config {
	r.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		r.Fatalf("parsing the kubeconfig: %v", err)
	}

	return config
}

// RuntimeClient returns a client with the address and the credentials in a kubeconfig. It does not call the runtime.
func RuntimeClient(r Reporter, kubeconfig []byte) *kubernetes.Clientset {
	r.Helper()

	runtime, err := kubernetes.NewForConfig(RuntimeConfig(r, kubeconfig))
	if err != nil {
		r.Fatalf("creating a client of the runtime: %v", err)
	}

	return runtime
}

// WantRuntimeResponds fails the test unless the API server of a runtime returns its version to the user of the kubeconfig.
func WantRuntimeResponds(r Reporter, reason string, kubeconfig []byte) {
	r.Helper()

	version, err := RuntimeClient(r, kubeconfig).Discovery().ServerVersion()
	if err != nil || !strings.HasPrefix(version.GitVersion, "v1.") {
		r.Errorf("%s: the runtime returned version %v, error %v", reason, version, err)
	}
}
