package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/sandbox"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestSandboxBundles installs a bundle on the runtime of an instance, pivots to another version, and removes it, with the fake garden.
func TestSandboxBundles(t *testing.T) {
	t.Parallel()

	testSandboxBundles(t)
}

// testSandboxBundles tests a sandbox that is started with --bundler and the given arguments.
func testSandboxBundles(t *testing.T, arguments ...string) {
	t.Helper()

	path, bundler := harness.Build(t, "sandbox"), harness.Build(t, "bundler")
	folder, address := t.TempDir(), harness.FreeAddress(t)
	variables := []string{
		"SANDBOX_DIR=" + folder, "SANDBOX_CLUSTER_CREATION=1s", "SANDBOX_BROKER_ADDRESS=" + address, "SANDBOX_PROVISIONER_ADDRESS=127.0.0.1:0",
		"SANDBOX_STATUS_ADDRESS=127.0.0.1:0", "SANDBOX_PROVISIONER_STATUS_ADDRESS=127.0.0.1:0", "SANDBOX_BUNDLES_ADDRESS=" + harness.FreeAddress(t),
		"SANDBOX_BUNDLES_STATUS_ADDRESS=127.0.0.1:0",
	}
	arguments = append(arguments, "--bundler=exec "+bundler)

	p := newPlatform(t, "http://"+address)
	p.User, p.Password = sandbox.User, sandbox.Password

	running := harness.Launch(t, variables, path, arguments...)
	if line := running.Line(); !strings.HasPrefix(line, "sandbox ready") {
		t.Fatalf("the first line of the sandbox is %q", line)
	}

	p.Create("with-bundle", harness.PlanAWS)
	p.WantSucceeded("with-bundle")

	hub := hubClient(t, folder, p)
	target := harness.RuntimeClient(t, p.kubeconfig("with-bundle"))

	create := func(object client.Object) {
		t.Helper()

		if err := hub.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "target", Namespace: "bundle-system"},
		Data:       map[string][]byte{"kubeconfig": p.kubeconfig("with-bundle")},
	})

	for _, version := range []string{"v1", "v2"} {
		create(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: version, Namespace: "bundle-system"},
			Data: map[string]string{"greeting.yaml": fmt.Sprintf(
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting, namespace: default}\ndata: {version: %s}\n", version)},
		})
	}

	deployment := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "greeting"}, Spec: v1alpha1.BundleDeploymentSpec{
		ProvisionerClassName: "core-rukpak-io-plain",
		Target:               &v1alpha1.Target{KubeconfigSecretRef: v1alpha1.SecretKeyReference{Name: "target"}},
		Template:             v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: "core-rukpak-io-plain", Source: greeting("v1")}},
	}}
	create(deployment)

	installed := func(version string) func() bool {
		return func() bool {
			found := &v1alpha1.BundleDeployment{}
			if hub.Get(t.Context(), client.ObjectKeyFromObject(deployment), found) != nil || !meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.TypeInstalled) {
				return false
			}

			object, err := target.CoreV1().ConfigMaps("default").Get(t.Context(), "greeting", metav1.GetOptions{})

			return err == nil && object.Data["version"] == version && found.Status.ObservedGeneration == found.Generation
		}
	}

	p.Until("version v1 on the runtime", installed("v1"))

	running.Kill() // the data survives

	running = harness.Launch(t, variables, path, arguments...)
	if line := running.Line(); !strings.HasPrefix(line, "sandbox ready") {
		t.Fatalf("the first line of the sandbox is %q", line)
	}

	hub = hubClient(t, folder, p)
	target = harness.RuntimeClient(t, p.kubeconfig("with-bundle"))

	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Fatal(err)
	}

	changed := deployment.DeepCopy()
	changed.Spec.Template.Spec.Source = greeting("v2")

	if err := hub.Patch(t.Context(), changed, client.MergeFrom(deployment)); err != nil {
		t.Fatal(err)
	}

	p.Until("version v2 on the runtime", installed("v2"))

	if err := hub.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}

	p.Until("the deletion", func() bool {
		deployments, bundles := &v1alpha1.BundleDeploymentList{}, &v1alpha1.BundleList{}
		_, err := target.CoreV1().ConfigMaps("default").Get(t.Context(), "greeting", metav1.GetOptions{})

		return apierrors.IsNotFound(err) && hub.List(t.Context(), deployments) == nil && hub.List(t.Context(), bundles) == nil &&
			len(deployments.Items)+len(bundles.Items) == 0
	})
}

// greeting returns the BundleSource for the given version of the bundle.
func greeting(version string) v1alpha1.BundleSource {
	return v1alpha1.BundleSource{Type: v1alpha1.SourceTypeConfigMaps, ConfigMaps: []v1alpha1.ConfigMapSource{
		{ConfigMap: v1alpha1.LocalReference{Name: version}, Path: "manifests"},
	}}
}

// hubClient waits until the sandbox has written the bundle provisioner's kubeconfig, and returns a client that uses it.
func hubClient(t *testing.T, folder string, p platform) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}

	file := filepath.Join(folder, "bundles.kubeconfig")

	p.Until("the kubeconfig of the bundle provisioner", func() bool {
		_, err := os.Stat(file)

		return err == nil
	})

	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}

	var hub client.Client

	p.Until("the Bundle API server", func() bool {
		hub, err = client.New(config, client.Options{Scheme: scheme})

		return err == nil && hub.List(t.Context(), &v1alpha1.BundleList{}) == nil
	})

	return hub
}
