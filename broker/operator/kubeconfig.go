package operator

import (
	"fmt"
	"net/http"

	kubeconfigv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// kubeconfig answers GET /kubeconfig/{instance_id}: a kubeconfig by which users log in at the OIDC issuer. It holds no secret, so
// everybody may have it, and pages of other sites may read it.
func (a *api) kubeconfig(r *http.Request) (httpserver.Answer, error) {
	instance, err := a.reachable(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	endpoint, err := a.Endpoints.Endpoint(r.Context(), instance)
	if err != nil {
		return httpserver.Answer{}, err
	}

	content, err := yaml.Marshal(userKubeconfig(instance, endpoint, a.issuerOf(instance)))
	if err != nil {
		return httpserver.Answer{}, fmt.Errorf("encoding a kubeconfig: %w", err)
	}

	return httpserver.Answer{Status: http.StatusOK, Body: content, Header: http.Header{
		"Content-Type":                {"application/x-yaml"},
		"Content-Disposition":         {`attachment; filename="kubeconfig.yaml"`},
		"Access-Control-Allow-Origin": {"*"},
	}}, nil
}

// issuerOf is the issuer that the runtime was ordered with, else the one that is configured.
func (a *api) issuerOf(instance environment.Instance) OIDC {
	if own := instance.Request.Cluster.OIDC; own != nil {
		return OIDC{IssuerURL: own.IssuerURL, ClientID: own.ClientID}
	}

	return a.OIDC
}

// userKubeconfig has one context, named like the runtime. Its user calls kubelogin, the plugin oidc-login of kubectl.
func userKubeconfig(instance environment.Instance, endpoint Endpoint, oidc OIDC) kubeconfigv1.Config {
	const user = "oidc"

	config := kubeconfigv1.Config{
		Kind:           "Config",
		APIVersion:     "v1",
		CurrentContext: instance.Name,
		Clusters: []kubeconfigv1.NamedCluster{{Name: instance.ShootName, Cluster: kubeconfigv1.Cluster{
			Server: endpoint.Server, CertificateAuthorityData: endpoint.CA,
		}}},
		Contexts: []kubeconfigv1.NamedContext{{Name: instance.Name, Context: kubeconfigv1.Context{Cluster: instance.ShootName}}},
	}

	if oidc.IssuerURL == "" {
		return config
	}

	config.Contexts[0].Context.AuthInfo = user
	config.AuthInfos = []kubeconfigv1.NamedAuthInfo{{Name: user, AuthInfo: kubeconfigv1.AuthInfo{Exec: &kubeconfigv1.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1",
		Command:    "kubectl",
		Args: []string{
			"oidc-login", "get-token",
			"--oidc-issuer-url=" + oidc.IssuerURL,
			"--oidc-client-id=" + oidc.ClientID,
			"--oidc-extra-scope=email",
			"--oidc-extra-scope=openid",
		},
		InteractiveMode: kubeconfigv1.IfAvailableExecInteractiveMode,
		InstallHint:     "kubelogin is missing: kubectl krew install oidc-login",
	}}}}

	return config
}
