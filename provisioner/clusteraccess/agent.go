package clusteraccess

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/environment-broker/environment-broker/provisioner/agent"
)

const (
	// agentSecret and connectionName are the names that the Compass runtime agent uses for its Secret and its CompassConnection.
	agentSecret    = "compass-agent-configuration"
	connectionName = "compass-connection"

	// fieldManager is the field manager under which the Provisioner writes these objects.
	fieldManager   = "environment-broker"
	labelManagedBy = "app.kubernetes.io/managed-by"

	// These annotations of the Secret store agent.Configuration's WrittenBy and Replaces.
	annotationWrittenBy = "environment-broker.io/operation-id"
	annotationReplaces  = "environment-broker.io/replaces-connection"

	// longestProblem is the maximum length, in bytes, of a text from a cluster that a message quotes.
	longestProblem = 1000
)

// secrets returns a client for the Secrets in the agent's namespace.
func secrets(cluster dynamic.Interface, at agent.Place) dynamic.ResourceInterface {
	return cluster.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(at.Namespace)
}

// connections returns a client for CompassConnections, which are cluster-scoped.
func connections(cluster dynamic.Interface) dynamic.ResourceInterface {
	return cluster.Resource(schema.GroupVersionResource{Group: "compass.kyma-project.io", Version: "v1alpha1", Resource: "compassconnections"})
}

// Agent implements agent.Clusters. If the cluster does not serve CompassConnections yet, the agent has no connection.
func (a Access) Agent(ctx context.Context, at agent.Place) (agent.Agent, error) {
	cluster, disconnect, err := a.open(ctx, at.ShootName)
	if err != nil {
		return agent.Agent{}, err
	}
	defer disconnect()

	var found agent.Agent

	secret, err := secrets(cluster, at).Get(ctx, agentSecret, metav1.GetOptions{})

	switch {
	case err == nil:
		found.Version = secret.GetResourceVersion()
		found.ConfiguredBy = secret.GetAnnotations()[annotationWrittenBy]
		found.Replaces = secret.GetAnnotations()[annotationReplaces]
	case !apierrors.IsNotFound(err):
		return agent.Agent{}, unread(err, at)
	}

	connection, err := connections(cluster).Get(ctx, connectionName, metav1.GetOptions{})

	switch {
	case err == nil:
		found.Connection = connectionOf(connection)
	case !apierrors.IsNotFound(err):
		return agent.Agent{}, unread(err, at)
	}

	return found, nil
}

// unread converts an error from reading the agent's state to a failure.Error.
func unread(err error, at agent.Place) error {
	return explain(err, "the state of the runtime agent in the cluster %q could not be read", at.ShootName)
}

// connectionOf converts a CompassConnection. It returns nil for an object that is being deleted, because the agent will create a
// new one.
func connectionOf(object *unstructured.Unstructured) *agent.Connection {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}

	// Other versions of the agent may use another type for a field. Such a field is treated as empty.
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, append([]string{"status"}, fields...)...)

		return brief(value)
	}

	connection := &agent.Connection{ID: string(object.GetUID()), State: text("connectionState")}

	for _, part := range []string{"connectionStatus", "synchronizationStatus"} {
		if problem := text(part, "error"); problem != "" {
			connection.Problems = append(connection.Problems, problem)
		}
	}

	return connection
}

// brief shortens a text from a cluster to longestProblem bytes, without splitting a character.
func brief(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), longestProblem)], "")
}

// ConfigureAgent implements agent.Clusters. It creates the Secret, or updates an existing one by server-side apply. The API
// server reports a conflict if the Secret has another version than configuration.Over. The error is then transient: when the step
// is retried, it reads the Secret again.
func (a Access) ConfigureAgent(ctx context.Context, at agent.Place, configuration agent.Configuration) error {
	cluster, disconnect, err := a.open(ctx, at.ShootName)
	if err != nil {
		return err
	}
	defer disconnect()

	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	namespaces := cluster.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))

	if _, err := namespaces.Get(ctx, at.Namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		_, err = namespaces.Apply(ctx, at.Namespace, namespaceOf(at), options)
		if err != nil {
			return explain(err, "the namespace %q of the cluster %q could not be created", at.Namespace, at.ShootName)
		}
	}

	if configuration.Over == "" { // an apply would also overwrite a Secret that another replica has created since the read
		_, err = secrets(cluster, at).Create(ctx, secretOf(at, configuration), metav1.CreateOptions{FieldManager: fieldManager})
	} else {
		_, err = secrets(cluster, at).Apply(ctx, agentSecret, secretOf(at, configuration), options)
	}

	if err == nil {
		return nil
	}

	// The API server's message may quote the rejected Secret with its token, so the error contains only the reason.
	if typed, ok := errors.AsType[*apierrors.StatusError](err); ok {
		status := typed.Status()
		status.Message = "its API server rejects the request with the reason " + string(status.Reason)
		err = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: status.Reason, Code: status.Code, Message: status.Message}}
	}

	return explain(err, "the runtime agent of the cluster %q could not be configured", at.ShootName)
}

// namespaceOf returns the manifest of the agent's namespace. It contains only the name, so that the apply does not take ownership
// of the namespace's labels.
func namespaceOf(at agent.Place) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": at.Namespace},
	}}
}

// secretOf returns the Secret with the keys that the agent reads. If configuration.Over is set, it becomes the resourceVersion in
// the manifest, which makes the apply conditional.
func secretOf(at agent.Place, configuration agent.Configuration) *unstructured.Unstructured {
	data := map[string]any{}
	for key, value := range map[string]string{
		"CONNECTOR_URL": configuration.ConnectorURL,
		"RUNTIME_ID":    configuration.RuntimeID,
		"TENANT":        configuration.Tenant,
		"TOKEN":         configuration.Token.Token.Reveal(),
	} {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}

	metadata := map[string]any{
		"name":        agentSecret,
		"namespace":   at.Namespace,
		"labels":      map[string]any{labelManagedBy: fieldManager},
		"annotations": map[string]any{annotationWrittenBy: configuration.WrittenBy, annotationReplaces: configuration.Replaces},
	}
	if configuration.Over != "" {
		metadata["resourceVersion"] = configuration.Over
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeOpaque), "metadata": metadata, "data": data,
	}}
}

// RemoveConnection implements agent.Clusters. The ID is a precondition, so a newer connection of the agent is not removed.
func (a Access) RemoveConnection(ctx context.Context, at agent.Place, id string) error {
	cluster, disconnect, err := a.open(ctx, at.ShootName)
	if err != nil {
		return err
	}
	defer disconnect()

	err = connections(cluster).Delete(ctx, connectionName, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: new(types.UID(id))},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // The connection is gone or was replaced by a newer one.
	}

	return explain(err, "the previous connection of the runtime agent of the cluster %q could not be removed", at.ShootName)
}
