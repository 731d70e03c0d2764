package adminkubeconfig

import (
	"fmt"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

func requestKind() schema.GroupKind {
	return schema.GroupKind{Group: authenticationv1alpha1.SchemeGroupVersion.Group, Kind: "AdminKubeconfigRequest"}
}

// kubeconfig has a context for every address, under the names that Gardener gives them; the first is the current one.
func kubeconfig(
	shoot client.ObjectKey, addresses []gardencorev1beta1.ShootAdvertisedAddress, clusterCA []byte, pair certificate.Pair,
) ([]byte, error) {
	user := shoot.Namespace + "--" + shoot.Name
	config := clientcmdapi.NewConfig()
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}
	for _, address := range addresses {
		name := user + "-" + address.Name
		config.Clusters[name] = &clientcmdapi.Cluster{Server: address.URL, CertificateAuthorityData: clusterCA}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	}
	config.CurrentContext = user + "-" + addresses[0].Name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", shoot, err)
	}
	return content, nil
}
