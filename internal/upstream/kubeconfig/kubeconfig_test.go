package kubeconfig_test

import (
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/environment-broker/environment-broker/internal/upstream/kubeconfig"
)

func TestRefersOutside(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		user clientcmdapi.AuthInfo
		want bool
	}{
		"a token":                   {clientcmdapi.AuthInfo{Token: "t"}, false},
		"a certificate":             {clientcmdapi.AuthInfo{ClientCertificateData: []byte("c"), ClientKeyData: []byte("k")}, false},
		"a program":                 {clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "sh"}}, true},
		"a plug-in":                 {clientcmdapi.AuthInfo{AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "p"}}, true},
		"a file with a token":       {clientcmdapi.AuthInfo{Token: "t", TokenFile: "f"}, true},
		"a file with a certificate": {clientcmdapi.AuthInfo{ClientCertificate: "f"}, true},
		"a file with a private key": {clientcmdapi.AuthInfo{ClientKey: "f"}, true},
	} {
		if got := kubeconfig.RefersOutside(&c.user); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}
