package runtimeaccess

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	kubeconfigv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// accessBy writes a kubeconfig for the holder of the token. It leads to the same API server as the administrator's.
func accessBy(admin *rest.Config, issued authenticationv1.TokenRequestStatus) (environment.Access, error) {
	const name = "runtime"

	text, err := yaml.Marshal(kubeconfigv1.Config{
		Kind:           "Config",
		APIVersion:     "v1",
		CurrentContext: name,
		Clusters: []kubeconfigv1.NamedCluster{{Name: name, Cluster: kubeconfigv1.Cluster{
			Server: admin.Host, CertificateAuthorityData: admin.CAData,
			TLSServerName: admin.ServerName, InsecureSkipTLSVerify: admin.Insecure,
		}}},
		Contexts:  []kubeconfigv1.NamedContext{{Name: name, Context: kubeconfigv1.Context{Cluster: name, AuthInfo: name}}},
		AuthInfos: []kubeconfigv1.NamedAuthInfo{{Name: name, AuthInfo: kubeconfigv1.AuthInfo{Token: issued.Token}}},
	})
	if err != nil || issued.Token == "" || issued.ExpirationTimestamp.IsZero() {
		// The error could quote the token.
		return environment.Access{}, failure.New(failure.Transient, "the runtime did not issue a token as it should").
			WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}

	return environment.Access{
		Kubeconfig: secret.String(text), Server: admin.Host, ExpiresAt: issued.ExpirationTimestamp.Time,
	}, nil
}
