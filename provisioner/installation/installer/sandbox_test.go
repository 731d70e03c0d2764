package installer_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/runtimes"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/installer"
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

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// connect returns a client for the runtime. Its connections are closed at the end of the test.
func connect(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.CloseIdleConnections)
	cluster, err := client.New(config, client.Options{HTTPClient: connection})
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// TestReplacedObjectIsKept replaces an installed object with an object of another owner that has the same name, after the
// applier has read the object and before it sends the request to delete it. The applier must not delete the new object.
func TestReplacedObjectIsKept(t *testing.T) {
	config := sandboxRuntime(t)
	cluster := connect(t, config)
	catalog := releases.New(releases.Folder{FS: resources.Releases()})
	kyma := installer.New(installer.Options{Manifests: catalog, Now: time.Now})
	plan, err := catalog.Plan(t.Context(), spec.Kyma{Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	for done := false; !done; {
		progress, err := kyma.Install(t.Context(), installation.Target{Cluster: config, RuntimeID: "runtime-1"}, plan)
		if err != nil {
			t.Fatal(err)
		}
		done = progress.Done
	}
	const namespace, name = "kyma-system", "cluster-essentials"
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	replaced := 0
	intercepted := rest.CopyConfig(config)
	intercepted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodDelete && strings.HasSuffix(request.URL.Path, "/configmaps/"+name) {
				if replaced++; replaced == 1 {
					ours := theirs.DeepCopy()
					if err := errors.Join(cluster.Delete(request.Context(), ours), cluster.Create(request.Context(), theirs)); err != nil {
						t.Error(err)
					}
				}
			}
			return next.RoundTrip(request)
		})
	})
	progress, err := kyma.Uninstall(t.Context(), installation.Target{Cluster: intercepted, RuntimeID: "runtime-1"})
	if replaced != 1 || progress.Done || !failure.Is(err, failure.Transient) {
		t.Errorf("the deletion of the replaced object: %d requests, %+v, %v, want a conflict, which is retried", replaced, progress, err)
	}
	progress, err = kyma.Uninstall(t.Context(), installation.Target{Cluster: intercepted, RuntimeID: "runtime-1"})
	if err != nil || !progress.Done || replaced != 1 {
		t.Errorf("the uninstallation does not continue without the object: %d requests, %+v, %v", replaced, progress, err)
	}
	left := &corev1.ConfigMap{}
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(theirs), left); err != nil || left.UID != theirs.UID {
		t.Errorf("the object of another owner was deleted: %v", err)
	}
}

// TestSampleReleasesInTheSandbox installs, upgrades, downgrades and removes the sample releases.
func TestSampleReleasesInTheSandbox(t *testing.T) {
	config := sandboxRuntime(t)
	cluster := connect(t, config)
	catalog := releases.New(releases.Folder{FS: resources.Releases()})
	kyma := installer.New(installer.Options{Manifests: catalog, Now: time.Now})
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
			if progress, err = kyma.Install(t.Context(), installation.Target{Cluster: config, RuntimeID: "runtime-1"}, plan); err != nil || progress.Done {
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
	if progress, err := kyma.Uninstall(t.Context(), installation.Target{Cluster: config, RuntimeID: "runtime-1"}); err != nil || progress != (installation.Progress{Done: true, Message: "nothing is installed"}) {
		t.Errorf("%+v, %v", progress, err)
	}
	if err := cluster.Get(t.Context(), client.ObjectKey{Name: "kyma-system"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace still exists: %v", err)
	}
}
