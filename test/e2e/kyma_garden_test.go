//go:build garden

package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRuntimesWithKymaOnLocalGarden runs testKyma with real API servers.
func TestRuntimesWithKymaOnLocalGarden(t *testing.T) {
	t.Parallel()

	testKyma(t, sharedGarden(t, "own").project, clusters.defineServices)
}

// defineServices creates the service catalog's custom resource definitions in a runtime.
func (c clusters) defineServices(runtimeID string) {
	c.Helper()

	definitions := c.dynamicClient(runtimeID).Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})

	for kind, scope := range map[string]string{
		"ClusterServiceBroker": "Cluster", "ClusterServiceClass": "Cluster",
		"ServiceBroker": "Namespaced", "ServiceInstance": "Namespaced", "ServiceBinding": "Namespaced",
	} {
		plural := strings.ToLower(kind) + "s"
		if kind == "ClusterServiceClass" {
			plural = "clusterserviceclasses"
		}

		_, err := definitions.Create(c.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{
				"name": plural + ".servicecatalog.k8s.io", "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"},
			},
			"spec": map[string]any{
				"group": "servicecatalog.k8s.io", "scope": scope, "names": map[string]any{"kind": kind, "plural": plural},
				"versions": []any{map[string]any{
					"name": "v1beta1", "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			},
		}}, metav1.CreateOptions{})
		if err != nil {
			c.Fatal(err)
		}
	}
}
