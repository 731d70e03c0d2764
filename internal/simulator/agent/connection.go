package agent

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	connectionKind     = "CompassConnection"
	connectionResource = "compassconnections"
)

func connectionGroup() schema.GroupVersion {
	return schema.GroupVersion{Group: "compass.kyma-project.io", Version: "v1alpha1"}
}

func (a *Agent) connections() dynamic.ResourceInterface {
	return a.Cluster.Resource(connectionGroup().WithResource(connectionResource))
}

func newConnection() *unstructured.Unstructured {
	connection := &unstructured.Unstructured{Object: map[string]any{}}
	connection.SetGroupVersionKind(connectionGroup().WithKind(connectionKind))
	connection.SetName(connectionName)

	return connection
}

// told writes into the connection how it went: one state when it went well, another when it failed, and the error beside it.
func told(connection *unstructured.Unstructured, well, badly, part string, err error) *unstructured.Unstructured {
	state, problem := well, ""
	if err != nil {
		state, problem = badly, err.Error()
	}

	connection.Object["status"] = map[string]any{"connectionState": state, part: map[string]any{"error": problem}}

	return connection
}

// Definition is the CustomResourceDefinition of CompassConnections, for clusters that do not know them.
func Definition() *unstructured.Unstructured {
	group := connectionGroup()

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": connectionResource + "." + group.Group},
		"spec": map[string]any{
			"group": group.Group, "scope": "Cluster",
			"names": map[string]any{"kind": connectionKind, "plural": connectionResource, "singular": "compassconnection"},
			"versions": []any{map[string]any{
				"name": group.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}
