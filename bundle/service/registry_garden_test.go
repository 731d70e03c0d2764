//go:build garden

package service_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/bundle/content"
)

// TestRegistryClass unpacks a bundle in the format registry+v1 and reads the objects it is converted to.
func TestRegistryClass(t *testing.T) {
	cluster, namespace := bundletest.Client(t, api), bundletest.Namespace(t, api)
	config := settings(t, namespace)
	replica := start(t, config)

	for name, text := range map[string]string{
		"annotations.yaml": "annotations: {operators.operatorframework.io.bundle.package.v1: cache}\n",
		"csv.yaml": "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: cache.v1}\n" +
			"spec: {installModes: [{type: AllNamespaces, supported: true}]}\n",
	} {
		if err := cluster.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.TrimSuffix(name, ".yaml")}, Immutable: new(true), Data: map[string]string{name: text},
		}); err != nil {
			t.Fatal(err)
		}
	}

	ofRegistry := config
	ofRegistry.Bundles.PlainClass = config.Bundles.RegistryClass
	bundle := create(t, ofRegistry, v1alpha1.BundleSource{Type: v1alpha1.SourceTypeConfigMaps, ConfigMaps: []v1alpha1.ConfigMapSource{
		{ConfigMap: v1alpha1.LocalReference{Name: "annotations"}, Path: "metadata"},
		{ConfigMap: v1alpha1.LocalReference{Name: "csv"}, Path: "manifests"},
	}})
	unpacked := reaches(t, bundle, v1alpha1.PhaseUnpacked)
	client := reader(t, config)

	bundletest.Eventually(t, func() string {
		into, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer into.Close()

		if err := client.Fetch(t.Context(), content.URL(replica.Address(), bundle), unpacked.Digest, into); err != nil {
			return err.Error()
		}

		if text, err := into.ReadFile("manifests/manifest.yaml"); err != nil || !strings.Contains(string(text), "name: cache-system") {
			t.Errorf("the manifest is %q: %v", text, err)
		}

		return ""
	})
}
