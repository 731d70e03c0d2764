package fakeagent

import (
	"context"
	_ "embed"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	connectionName     = "compass-connection"
	connectionKind     = "CompassConnection"
	connectionResource = "compassconnections"
)

// States of a CompassConnection that the agent reports. After Connected or SynchronizationFailed, the agent calls Synchronize
// again. After ConnectionFailed, it waits for another token.
const (
	connected             = "Connected"
	connectionFailed      = "ConnectionFailed"
	synchronized          = "Synchronized"
	synchronizationFailed = "SynchronizationFailed"
)

// connectionGroup returns the API group and version of CompassConnections.
func connectionGroup() schema.GroupVersion {
	return schema.GroupVersion{Group: "compass.kyma-project.io", Version: "v1alpha1"}
}

func (a *Agent) connections() dynamic.ResourceInterface {
	return a.Cluster.Resource(connectionGroup().WithResource(connectionResource))
}

// connection returns the CompassConnection of the cluster. It returns nil if the agent has not reported yet, if a client deleted
// the connection to request a new one, or if the cluster has no CompassConnection kind.
func (a *Agent) connection(ctx context.Context) (*unstructured.Unstructured, error) {
	found, err := a.connections().Get(ctx, connectionName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	return found, failure.While(err, "reading the connection")
}

// stateOf returns the reported state. It is empty if connection is nil or has no status yet.
func stateOf(connection *unstructured.Unstructured) string {
	if connection == nil {
		return ""
	}

	state, _, _ := unstructured.NestedString(connection.Object, "status", "connectionState")

	return state
}

// connecting returns the status to report after an attempt to connect. problem is nil if the attempt succeeded.
func connecting(problem error) map[string]any {
	return status(connected, connectionFailed, "connectionStatus", problem)
}

func synchronization(problem error) map[string]any {
	return status(synchronized, synchronizationFailed, "synchronizationStatus", problem)
}

// status returns the status of a CompassConnection. Its state is succeeded if problem is nil, and failed otherwise. part is the
// name of the field that contains the error message.
func status(succeeded, failed, part string, problem error) map[string]any {
	state, text := succeeded, ""
	if problem != nil {
		state, text = failed, problem.Error()
	}

	return map[string]any{"connectionState": state, part: map[string]any{"error": text}}
}

// report writes the status to the connection, which it creates if connection is nil. If the cluster has no CompassConnection
// kind, report creates the CustomResourceDefinition instead, and the next check reports the status.
func (a *Agent) report(ctx context.Context, connection *unstructured.Unstructured, status map[string]any) error {
	if connection != nil {
		connection.Object["status"] = status
		if _, err := a.connections().Update(ctx, connection, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("updating the connection: %w", err)
		}

		return nil
	}

	connection = &unstructured.Unstructured{Object: map[string]any{"status": status}}
	connection.SetGroupVersionKind(connectionGroup().WithKind(connectionKind))
	connection.SetName(connectionName)

	_, err := a.connections().Create(ctx, connection, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = a.Cluster.Resource(definitionResource()).Create(ctx, definition(), metav1.CreateOptions{})
	}

	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the connection: %w", err)
	}

	return nil
}

func definitionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

//go:embed definition.yaml
var definitionText []byte

// definition returns the CustomResourceDefinition of CompassConnections. Its schema accepts every field, because the agent writes
// only a few fields of the real status.
func definition() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(definitionText, object); err != nil {
		panic(err) // the file is embedded
	}

	return object
}
