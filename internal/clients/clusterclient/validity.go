package clusterclient

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Validity returns the times at which the client certificate of the kubeconfig's current user becomes valid and expires. Both are
// zero if there is no certificate.
func Validity(kubeconfig secret.String) (from, until time.Time) {
	config, err := clientcmd.Load([]byte(kubeconfig.Reveal()))
	if err != nil {
		return from, until
	}

	current, found := config.Contexts[config.CurrentContext]
	if !found || config.AuthInfos[current.AuthInfo] == nil {
		return from, until
	}

	block, _ := pem.Decode(config.AuthInfos[current.AuthInfo].ClientCertificateData)
	if block == nil {
		return from, until
	}

	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return from, until
	}

	return certificate.NotBefore.UTC(), certificate.NotAfter.UTC()
}
