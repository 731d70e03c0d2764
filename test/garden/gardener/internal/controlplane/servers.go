package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/apiserver"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

// Server names. They are used for executables, ports and logs.
const (
	etcdName       = "etcd"
	kubernetesName = "kube-apiserver"
	gardenerName   = "gardener-apiserver"
)

// startEtcd starts the etcd that stores the objects of the garden and the runtimes. fsync is off, so writes do not wait for the
// disk: the data survives if all processes die, but not if the machine crashes.
func (c *ControlPlane) startEtcd(ctx context.Context) error {
	number, err := c.config.Ports.Port(etcdName)
	if err != nil {
		return err
	}
	c.EtcdURL = "http://" + freeport.Address(number)
	if err := process.WaitFree(ctx, number); err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	c.etcd, err = process.Start(process.Spec{
		Name: etcdName,
		Path: filepath.Join(c.config.Binaries, etcdName),
		Args: []string{
			"--data-dir=" + filepath.Join(c.config.Dir, "etcd"),
			"--listen-client-urls=" + c.EtcdURL,
			"--advertise-client-urls=" + c.EtcdURL,
			"--listen-peer-urls=http://127.0.0.1:0", // required, even without peers
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
		Log: c.log(etcdName),
	})
	if err != nil {
		return err
	}
	c.watch(c.etcd)
	return c.etcd.WaitReady(ctx, process.Answers(http.DefaultClient, c.EtcdURL+"/health"))
}

// startKubernetes starts the garden's kube-apiserver. Once Gardener's API server is registered, kube-apiserver forwards requests
// for Gardener's groups to it. These requests contain the user in headers and are authenticated with the front proxy's
// certificate.
func (c *ControlPlane) startKubernetes(ctx context.Context) error {
	number, err := c.config.Ports.Port(kubernetesName)
	if err != nil {
		return err
	}
	// A client certificate from this CA permits its owner to act as any user, so the CA issues no other certificates.
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

// startGardener starts Gardener's API server, with its default admission plugins, and registers its groups. It returns when
// kube-apiserver serves the groups, which can take a few seconds after the registration.
func (c *ControlPlane) startGardener(ctx context.Context) error {
	number, err := c.config.Ports.Port(gardenerName)
	if err != nil {
		return err
	}
	serving, err := c.Certificates.Server(gardenerName, "127.0.0.1", serviceName+"."+serviceNamespace+".svc")
	if err != nil {
		return err
	}
	// The server uses the credentials of an administrator, so it needs no roles.
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
