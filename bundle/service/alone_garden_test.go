//go:build garden

package service_test

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

// TestEachControllerAlone enables first one controller, then the other one, and then both, in two services with separate stores. A
// controller must not change the objects of the other one.
func TestEachControllerAlone(t *testing.T) {
	cluster, namespace := bundletest.Client(t, api), bundletest.Namespace(t, api)
	unpacking, installing := settings(t, namespace), settings(t, namespace)
	installing.Bundles.Enabled, installing.Deployments.Enabled, installing.Deployments.TokenFile = false, true, contentToken(t, namespace)
	installing.Deployments.CAFile = filepath.Join(unpacking.StoreDir, "tls.crt")

	if err := cluster.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "content"}, Immutable: new(true),
		Data: map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: installed, namespace: " + namespace + "}\n"},
	}); err != nil {
		t.Fatal(err)
	}

	source := v1alpha1.BundleSource{Type: v1alpha1.SourceTypeConfigMaps, ConfigMaps: []v1alpha1.ConfigMapSource{
		{ConfigMap: v1alpha1.LocalReference{Name: "content"}, Path: "manifests"},
	}}
	deployment := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "alone-" + namespace},
		Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: installing.Deployments.PlainClass,
			Template:             v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: unpacking.Bundles.PlainClass, Source: source}},
		},
	}

	if err := cluster.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}

	read := func(t *testing.T) {
		t.Helper()

		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("Bundles", func(t *testing.T) {
		start(t, unpacking)
		reaches(t, create(t, unpacking, source), v1alpha1.PhaseUnpacked)
		read(t)

		if len(deployment.Status.Conditions)+len(deployment.Finalizers) > 0 {
			t.Errorf("the BundleDeployment was changed: %+v", deployment)
		}
	})

	t.Run("BundleDeployments", func(t *testing.T) {
		start(t, installing)
		bundletest.Eventually(t, func() string {
			read(t)

			if found := meta.FindStatusCondition(deployment.Status.Conditions, v1alpha1.TypeHasValidBundle); found == nil || found.Reason != v1alpha1.ReasonUnpackPending {
				return "the BundleDeployment does not wait for its Bundle"
			}

			return ""
		})

		bundles := &v1alpha1.BundleList{}
		if err := cluster.List(t.Context(), bundles, client.MatchingLabels{v1alpha1.LabelOwnerName: deployment.Name}); err != nil {
			t.Fatal(err)
		}

		if len(bundles.Items) != 1 || bundles.Items[0].Status.Phase != "" || len(bundles.Items[0].Finalizers) > 0 {
			t.Errorf("the Bundles are %+v", bundles.Items)
		}
	})

	t.Run("both", func(t *testing.T) {
		start(t, unpacking)
		start(t, installing)
		reachesInstalled(t, cluster, deployment)

		if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "installed"}, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}

		if err := cluster.Delete(t.Context(), deployment); err != nil {
			t.Fatal(err)
		}

		bundletest.Eventually(t, func() string {
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err == nil {
				return "the BundleDeployment is not removed"
			}

			return ""
		})
	})
}
