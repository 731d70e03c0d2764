package controlplane

import (
	"context"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/apiserver"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

const gardenerName = "gardener-apiserver"

// startGardener starts Gardener's API server, with its default admission plugins, and registers its groups.
func (c *ControlPlane) startGardener(ctx context.Context) error {
	number, err := c.config.Ports.Port(gardenerName)
	if err != nil {
		return err
	}
	serving, err := c.Certificates.Server(gardenerName, "127.0.0.1", serviceName+"."+serviceNamespace+".svc")
	if err != nil {
		return err
	}
	// With the credentials of an administrator, Gardener's own roles are not needed.
	kubernetes := filepath.Join(c.config.Dir, gardenerName+".kubeconfig")
	if err := apiserver.WriteKubeconfig(kubernetes, c.Kubernetes.Admin, ""); err != nil {
		return err
	}
	if err := process.WaitFree(ctx, number); err != nil {
		return err
	}
	gardener, err := process.Start(process.Spec{
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
	if err := gardener.WaitReady(ctx, process.Answers(anyone, "https://"+freeport.Address(number)+"/readyz")); err != nil {
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
