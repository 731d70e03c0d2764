package applier_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/runtimes"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/applier"
	"github.com/environment-broker/environment-broker/provisioner/installation/releases"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/resources"
)

// sandboxRuntime starts a runtime of the sandbox and returns its admin configuration.
func sandboxRuntime(t *testing.T) *rest.Config {
	t.Helper()
	server, err := runtimes.Listen(t.Context(), runtimes.Options{
		Dir: t.TempDir(), Log: logging.Discard(), Version: func(context.Context, string) string { return "1.35.4" },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	key, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := certificate.NewAuthority("clients", key)
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := server.Start(t.Context(), "shoot--local--c-first", authority.CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.IssueClient(certificate.Client{
		CommonName: "admin", Organizations: []string{"gardener.cloud:system:admins"}, Validity: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &rest.Config{Host: endpoint.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: endpoint.CA, CertData: pair.Certificate, KeyData: pair.Key,
	}}
}

// TestSampleReleasesInTheSandbox installs, upgrades, downgrades and removes the sample releases.
func TestSampleReleasesInTheSandbox(t *testing.T) {
	config := sandboxRuntime(t)
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.CloseIdleConnections)
	cluster, err := client.New(config, client.Options{HTTPClient: connection})
	if err != nil {
		t.Fatal(err)
	}
	catalog := releases.New(releases.Folder{FS: resources.Releases()})
	installer := applier.New(applier.Options{Manifests: catalog, Now: time.Now})
	secret := true
	order := func(version string, components ...string) spec.Kyma {
		wanted := spec.Kyma{Version: version}
		for _, name := range components {
			wanted.Components = append(wanted.Components, &spec.Component{Component: name})
		}
		wanted.Configuration = []*spec.Entry{{Key: "adminPassword", Value: "hunter2", Secret: &secret}}
		return wanted
	}
	for _, tc := range []struct {
		reason string
		order  spec.Kyma
		want   map[string]string
	}{
		{"the minimal installation", order("1.0.0", "compass-runtime-agent"), map[string]string{"cluster-essentials": "1.0.0"}},
		{"with an optional component", order("1.0.0", "compass-runtime-agent", "monitoring"), map[string]string{"cluster-essentials": "1.0.0", "monitoring": "1.0.0"}},
		{
			"an upgrade with another optional component", order("1.1.0", "tracing", "monitoring", "compass-runtime-agent"),
			map[string]string{"cluster-essentials": "1.1.0", "monitoring": "1.1.0", "tracing": ""},
		},
		{"a downgrade", order("1.0.0", "compass-runtime-agent"), map[string]string{"cluster-essentials": "1.0.0"}},
	} {
		plan, err := catalog.Plan(t.Context(), tc.order)
		if err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		progress := installation.Progress{}
		for range 20 {
			if progress, err = installer.Install(t.Context(), config, "runtime-1", plan); err != nil || progress.Done {
				break
			}
		}
		if err != nil || !strings.HasPrefix(progress.Message, "release "+tc.order.Version+" is installed") {
			t.Fatalf("%s: %+v, %v", tc.reason, progress, err)
		}
		found := map[string]string{}
		for _, name := range []string{"cluster-essentials", "monitoring", "tracing"} {
			settings := &corev1.ConfigMap{}
			err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "kyma-system", Name: name}, settings)
			if err == nil {
				found[name] = settings.Data["release"]
			}
		}
		if diff := cmp.Diff(tc.want, found); diff != "" {
			t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
		}
	}
	if progress, err := installer.Uninstall(t.Context(), config, "runtime-1"); err != nil || progress != (installation.Progress{Done: true, Message: "nothing is installed"}) {
		t.Errorf("%+v, %v", progress, err)
	}
	if err := cluster.Get(t.Context(), client.ObjectKey{Name: "kyma-system"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace still exists: %v", err)
	}
}
