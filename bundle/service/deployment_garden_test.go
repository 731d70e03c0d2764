//go:build garden

package service_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/bundle/service"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// TestDeployment installs the content of a ConfigMap through both controllers and the content server, and removes it.
func TestDeployment(t *testing.T) {
	cluster := bundletest.Client(t, api)
	namespace := bundletest.Namespace(t, api)
	config := settings(t, namespace)
	config.Deployments.Enabled, config.Deployments.TokenFile = true, contentToken(t, namespace)

	start(t, config)

	if err := cluster.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "content"}, Immutable: new(true),
		Data: map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: installed, namespace: " + namespace + "}\n"},
	}); err != nil {
		t.Fatal(err)
	}

	deployment := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "deployment-" + namespace},
		Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: config.Deployments.PlainClass,
			Template: v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{
				ProvisionerClassName: config.Bundles.PlainClass,
				Source: v1alpha1.BundleSource{Type: v1alpha1.SourceTypeConfigMaps, ConfigMaps: []v1alpha1.ConfigMapSource{
					{ConfigMap: v1alpha1.LocalReference{Name: "content"}, Path: "manifests"},
				}},
			}},
		},
	}
	if err := cluster.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}

	installed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "installed"}}

	bundletest.Eventually(t, func() string {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err.Error()
		}

		status := deployment.Status
		if !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.TypeInstalled) || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.TypeHealthy) {
			return "not installed and healthy"
		}

		return ""
	})

	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(installed), installed); err != nil {
		t.Fatal(err)
	}

	active := &v1alpha1.Bundle{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Name: deployment.Status.ActiveBundle}, active); err != nil || active.Status.Phase != v1alpha1.PhaseUnpacked {
		t.Errorf("the active Bundle is %q in phase %q: %v", active.Name, active.Status.Phase, err)
	}

	hasEvent(t, v1alpha1.KindBundle, active.Name, "Normal UnpackSuccessful the content is unpacked: sha256:")
	hasEvent(t, v1alpha1.KindBundleDeployment, deployment.Name, "Normal InstallationSucceeded Bundle "+active.Name+" is installed")

	if err := cluster.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}

	bundletest.Eventually(t, func() string {
		for _, object := range []client.Object{deployment, installed} {
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				return object.GetName() + " is not deleted"
			}
		}

		return ""
	})
}

// TestDeploymentsNeedAToken starts the service with the client certificate of the test's kubeconfig, which the content server does not accept.
func TestDeploymentsNeedAToken(t *testing.T) {
	config := settings(t, bundletest.Namespace(t, api))
	config.Deployments.Enabled = true

	const want = "APP_DEPLOYMENTS_TOKEN_FILE: the kubeconfig has no token; " +
		"name a file with the token of a ServiceAccount that has the ClusterRole bundle-reader"
	if _, err := service.New(t.Context(), config, api, logging.Discard()); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// contentToken returns a file with a token that may read the content of all Bundles.
func contentToken(t *testing.T, namespace string) string {
	t.Helper()

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reader-" + namespace},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/bundles/*"}, Verbs: []string{"get"}}},
	}
	if err := bundletest.Client(t, api).Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(bundletest.Token(t, api, namespace, "deployments", role.Name)), 0o600); err != nil {
		t.Fatal(err)
	}

	return file
}
