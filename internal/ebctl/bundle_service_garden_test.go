//go:build garden

package ebctl_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/bundle/service"
	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// TestBundleWithTheProvisioner uploads, installs and reads content with the real provisioner.
func TestBundleWithTheProvisioner(t *testing.T) {
	kubeconfig, namespace, cluster := bundleKubeconfig(t), bundletest.Namespace(t, bundleAPI), bundletest.Client(t, bundleAPI)

	if err := cluster.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Rules: []rbacv1.PolicyRule{
			{NonResourceURLs: []string{"/bundles/*"}, Verbs: []string{"get"}}, {NonResourceURLs: []string{"/uploads/*"}, Verbs: []string{"put"}},
		},
	}); err != nil {
		t.Fatal(err)
	}

	folder := t.TempDir()
	token, tokenFile := bundletest.Token(t, bundleAPI, namespace, "client", namespace), filepath.Join(t.TempDir(), "token")
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: installed, namespace: " + namespace + "}\n"

	for path, text := range map[string]string{tokenFile: token, filepath.Join(folder, "manifests", "a.yaml"): manifest} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	config := service.DefaultConfig()
	config.Address, config.StatusAddress, config.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	config.Namespace, config.StoreDir, config.TLS.SelfSigned = namespace, t.TempDir(), true
	config.Bundles.PlainClass, config.Deployments.PlainClass = "class-"+namespace, "class-"+namespace
	config.Deployments.TokenFile = tokenFile

	replica, err := service.New(t.Context(), config, bundleAPI, logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- replica.Run(ctx) }()

	t.Cleanup(func() {
		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	wait := started(t, kubeconfig, ebctl.ExitOK, "create", "uploaded", "--upload", "--class", config.Bundles.PlainClass, "--wait")
	provisioner := newProvisioner(t)
	deployment := provisioner.deployment("uploaded")
	bundle := ""

	bundletest.Eventually(t, func() string {
		made, problems, code := bundleRun(t, kubeconfig, "get", deployment.Name, "-o", "jsonpath={.bundles[0].metadata.name}")
		if code != ebctl.ExitOK || strings.TrimSpace(made) == "" {
			return "no Bundle yet: " + problems
		}

		bundle = strings.TrimSpace(made)

		return ""
	})

	// The API server of the tests has no garbage collector.
	t.Cleanup(func() { bundletest.Delete(t, cluster, &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: bundle}}) })

	access := []string{"--token", token, "--ca-file", filepath.Join(config.StoreDir, "tls.crt")}
	bundleCommand(t, kubeconfig, ebctl.ExitOK, append([]string{"push", bundle, folder, "--server", replica.Address()}, access...)...)

	out, _ := wait()
	wantTexts(t, out, bundle, "Unpacked", "InstallationSucceeded")

	out, _ = bundleCommand(t, kubeconfig, ebctl.ExitOK, append([]string{"content", bundle}, access...)...)
	wantTexts(t, out, "manifests/a.yaml")
}
