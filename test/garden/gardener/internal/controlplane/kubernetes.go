package controlplane

import (
	"context"
	"path/filepath"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/apiserver"
)

const kubernetesName = "kube-apiserver"

// startKubernetes starts the kube-apiserver, which forwards requests for Gardener's groups.
func (c *ControlPlane) startKubernetes(ctx context.Context) error {
	number, err := c.config.Ports.Port(kubernetesName)
	if err != nil {
		return err
	}
	// The aggregated server trusts the front proxy to name the user, so the authority issues no other certificate.
	frontProxy, err := apiserver.OpenCertificates(filepath.Join(c.config.Dir, "front-proxy"), "front-proxy")
	if err != nil {
		return err
	}
	proxy, err := frontProxy.Client("front-proxy-client")
	if err != nil {
		return err
	}
	c.Kubernetes, err = apiserver.Start(ctx, apiserver.Config{
		Name:         kubernetesName,
		Binaries:     c.config.Binaries,
		Logs:         c.config.Logs,
		Port:         number,
		EtcdURL:      c.EtcdURL,
		EtcdPrefix:   "/registry",
		Certificates: c.Certificates,
		ClientCAFile: c.Certificates.Authority().Certificate,
		Args: []string{
			"--requestheader-client-ca-file=" + frontProxy.Authority().Certificate,
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + proxy.Certificate,
			"--proxy-client-key-file=" + proxy.Key,
		},
	})
	if err != nil {
		return err
	}
	c.add(c.Kubernetes.Process)
	return nil
}
