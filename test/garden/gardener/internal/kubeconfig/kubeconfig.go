// Package kubeconfig writes kubeconfig files.
package kubeconfig

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/atomicfile"
)

// contextName is what the only cluster, user and context of a file are called.
const contextName = "garden"

// Write writes a file with which a client talks to the server of a config as its user, in a namespace unless it names another.
func Write(path string, config *rest.Config, namespace string) error {
	file := clientcmdapi.NewConfig()
	file.CurrentContext = contextName
	file.Clusters[contextName] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[contextName] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName, Namespace: namespace}
	content, err := clientcmd.Write(*file)
	if err != nil {
		return fmt.Errorf("encode the kubeconfig: %w", err)
	}
	return atomicfile.Write(path, content)
}
