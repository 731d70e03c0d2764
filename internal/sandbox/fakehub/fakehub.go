// Package fakehub simulates the API server of the bundle provisioner: the cluster with the Bundles and BundleDeployments. Its
// objects are stored in files, so they survive a restart.
//
// The hub is a simulated runtime (package runtimes) with additional kinds. Any Kubernetes client works with it. The hub does not
// evaluate the rules in the CustomResourceDefinitions; admit checks the most important ones.
package fakehub

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/kubeapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/runtimes"
)

const (
	// technicalID identifies the hub in addresses and tokens.
	technicalID = "hub"
	// version is the Kubernetes version that the hub reports.
	version = "1.35.4"
	// administratorsGroup is a group whose members have all permissions in a simulated runtime.
	administratorsGroup = "gardener.cloud:system:admins"
	// validity is how long the administrator certificate is valid.
	validity = 365 * 24 * time.Hour
)

// Hub is the simulated API server of the bundle provisioner.
type Hub struct {
	server *runtimes.Server
	config *rest.Config
}

// Open loads the objects of a hub from a folder that only this hub may use, or creates a new hub. It binds the address, which
// stays the same across restarts unless another program is using it. Requests are not answered until Run is called.
func Open(ctx context.Context, dir string, log logrus.FieldLogger) (*Hub, error) {
	server, err := runtimes.Listen(ctx, runtimes.Options{
		Dir: dir, Log: log, Version: func(context.Context, string) string { return version },
		More: runtimes.More{Kinds: kinds(), AddToScheme: addToScheme, Admit: admit, AllowsPath: allowsPath},
	})
	if err != nil {
		return nil, fmt.Errorf("opening the Bundle API server: %w", err)
	}

	hub := &Hub{server: server}
	if err := hub.start(ctx, dir); err != nil {
		return nil, fmt.Errorf("opening the Bundle API server: %w", err)
	}

	return hub, nil
}

func (h *Hub) start(ctx context.Context, dir string) error {
	administrators, err := certificate.OpenAuthority(filepath.Join(dir, "clients"), "clients of the bundle provisioner")
	if err != nil {
		return err
	}

	endpoint, err := h.server.Start(ctx, technicalID, administrators.CertificatePEM())
	if err != nil {
		return err
	}

	pair, err := administrators.IssueClient(certificate.Client{CommonName: "sandbox", Organizations: []string{administratorsGroup}, Validity: validity})
	if err != nil {
		return err
	}

	h.config = &rest.Config{Host: endpoint.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: endpoint.CA, CertData: pair.Certificate, KeyData: pair.Key,
	}}

	return nil
}

// Config returns a client configuration with administrator permissions.
func (h *Hub) Config() *rest.Config { return rest.CopyConfig(h.config) }

// Kubeconfig returns a kubeconfig with administrator permissions.
func (h *Hub) Kubeconfig() ([]byte, error) {
	content := clientcmdapi.NewConfig()
	content.Clusters[technicalID] = &clientcmdapi.Cluster{Server: h.config.Host, CertificateAuthorityData: h.config.CAData}
	content.AuthInfos[technicalID] = &clientcmdapi.AuthInfo{ClientCertificateData: h.config.CertData, ClientKeyData: h.config.KeyData}
	content.Contexts[technicalID] = &clientcmdapi.Context{Cluster: technicalID, AuthInfo: technicalID}
	content.CurrentContext = technicalID

	written, err := clientcmd.Write(*content)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig: %w", err)
	}

	return written, nil
}

// Run serves until the context ends, which is not an error. It must not be called twice.
func (h *Hub) Run(ctx context.Context) error { return h.server.Serve(ctx) }

// Close closes a hub whose Run is never called.
func (h *Hub) Close() error { return h.server.Close() }

// kinds returns the kinds that a hub serves in addition to the kinds of a runtime.
func kinds() []kubeapi.Kind {
	return []kubeapi.Kind{
		{GroupVersionKind: v1alpha1.GroupVersion.WithKind("Bundle"), Status: true, Custom: true},
		{GroupVersionKind: v1alpha1.GroupVersion.WithKind("BundleDeployment"), Status: true, Custom: true, ShortNames: []string{"bd", "bds"}},
		{GroupVersionKind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), Namespaced: true},
		{GroupVersionKind: eventsv1.SchemeGroupVersion.WithKind("Event"), Namespaced: true, ShortNames: []string{"ev"}},
	}
}

func addToScheme(scheme *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(v1alpha1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme)

	return builder.AddToScheme(scheme)
}

// allowsPath reports whether a role allows a verb for a content server path. It implements the roles in
// resources/rbac/bundles.yaml.
func allowsPath(role, verb, path string) bool {
	switch role {
	case "bundle-reader":
		return verb == "get" && strings.HasPrefix(path, "/bundles/")
	case "bundle-uploader":
		return verb == "put" && strings.HasPrefix(path, "/uploads/")
	}

	return false
}
