package console

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakehub"
	"github.com/environment-broker/environment-broker/test/harness"
)

// withBundles starts a simulated bundle provisioner API server, which contains the BundleDeployment eventing. It returns a
// function that changes the broker's settings so that the console uses this server.
func withBundles(t *testing.T) func(*broker.Config) {
	t.Helper()

	hub, err := fakehub.Open(t.Context(), t.TempDir(), logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	harness.Run(t, hub.Run)

	kubeconfig, err := hub.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	api, err := client.New(hub.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	ctx := context.WithoutCancel(t.Context())
	deployment := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "eventing"},
		Spec: v1alpha1.BundleDeploymentSpec{ProvisionerClassName: "plain", Template: v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{
			ProvisionerClassName: "plain",
			Source:               v1alpha1.BundleSource{Type: v1alpha1.SourceTypeImage, Image: &v1alpha1.ImageSource{Ref: "registry.example.com/eventing:1"}},
		}}},
	}

	if err := api.Create(ctx, deployment); err != nil {
		t.Fatal(err)
	}

	deployment.Status.ObservedGeneration = deployment.Generation
	deployment.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.TypeInstalled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInstallFailed, LastTransitionTime: metav1.Now(),
		Message: "the API server of the cluster does not respond",
	}}

	if err := api.Status().Update(ctx, deployment); err != nil {
		t.Fatal(err)
	}

	return func(settings *broker.Config) { settings.Console.BundlesKubeconfigPath = path }
}
