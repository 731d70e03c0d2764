package controlplane

import (
	"context"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/await"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/child"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/kubeconfig"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/port"
)

const gardenerName = "gardener-apiserver"

// startGardener starts Gardener's API server, with all of its own admission plugins, and registers its groups.
func (c *ControlPlane) startGardener(ctx context.Context) error {
	number, err := c.config.Ports.Port(gardenerName)
	if err != nil {
		return err
	}
	serving, err := c.Certificates.Server(gardenerName, "127.0.0.1", serviceName+"."+serviceNamespace+".svc")
	if err != nil {
		return err
	}
	// The file names an administrator, so that Gardener's own roles need not be set up.
	kubernetes := filepath.Join(c.config.Dir, gardenerName+".kubeconfig")
	if err := kubeconfig.Write(kubernetes, c.Kubernetes.Admin, ""); err != nil {
		return err
	}
	if err := port.WaitFree(ctx, number); err != nil {
		return err
	}
	gardener, err := child.Start(child.Spec{
		Name: gardenerName,
		Path: filepath.Join(c.config.Binaries, gardenerName),
		Args: []string{
			"--bind-address=127.0.0.1",
			"--secure-port=" + strconv.Itoa(number),
			"--tls-cert-file=" + serving.Certificate,
			"--tls-private-key-file=" + serving.Key,
			"--etcd-servers=" + c.EtcdURL,
			"--kubeconfig=" + kubernetes,
			"--authentication-kubeconfig=" + kubernetes,
			"--authorization-kubeconfig=" + kubernetes,
			"--cluster-identity=garden",
			"--profiling=false",
		},
		Log: c.log(gardenerName),
	})
	if err != nil {
		return err
	}
	c.add(gardener)
	anyone, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: c.Certificates.CA()}})
	if err != nil {
		return err
	}
	defer anyone.CloseIdleConnections()
	if err := gardener.WaitReady(ctx, await.Answer(anyone, "https://"+port.Address(number)+"/readyz")); err != nil {
		return err
	}
	groups, err := newRegistration(c.Kubernetes.Admin, number, c.Certificates.CA())
	if err != nil {
		return err
	}
	if err := groups.apply(ctx); err != nil {
		return err
	}
	return gardener.WaitReady(ctx, groups.served)
}
