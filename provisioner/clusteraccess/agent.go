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

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/agent"
)

// Names of the objects that runtime agents read and write.
const (
	agentSecret = "compass-agent-configuration"

	connectionName = "compass-connection"

	// fieldManager owns the fields that the Provisioner writes.
	fieldManager   = "environment-broker"
	labelManagedBy = "app.kubernetes.io/managed-by"

	annotationWrittenBy = "environment-broker.io/operation-id"
	annotationReplaces  = "environment-broker.io/replaces-connection"

	// longestProblem bounds texts from inside the cluster, in bytes.
	longestProblem = 1000
)

// session is an admin session in a cluster, with clients of the resources of runtime agents. Call disconnect at its end.
type session struct {
	secrets     dynamic.ResourceInterface
	namespaces  dynamic.ResourceInterface
	connections dynamic.ResourceInterface
	disconnect  func()
}

func (a Access) openSession(ctx context.Context, at agent.Place) (session, error) {
	cluster, disconnect, err := a.Connect(ctx, at.ShootName)
	if err != nil {
		return session{}, err
	}

	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		disconnect()

		return session{}, failure.Wrap(failure.Internal, err, "creating a client of the cluster %q failed", at.ShootName)
	}

	core := corev1.SchemeGroupVersion

	return session{
		secrets:     client.Resource(core.WithResource("secrets")).Namespace(at.Namespace),
		namespaces:  client.Resource(core.WithResource("namespaces")),
		connections: client.Resource(schema.GroupVersionResource{Group: "compass.kyma-project.io", Version: "v1alpha1", Resource: "compassconnections"}),
		disconnect:  disconnect,
	}, nil
}

// Agent implements agent.Clusters. A cluster that does not serve CompassConnections has no connection.
func (a Access) Agent(ctx context.Context, at agent.Place) (agent.Agent, error) {
	cluster, err := a.openSession(ctx, at)
	if err != nil {
		return agent.Agent{}, err
	}
	defer cluster.disconnect()

	var found agent.Agent

	secret, err := cluster.secrets.Get(ctx, agentSecret, metav1.GetOptions{})

	switch {
	case err == nil:
		found.Version = secret.GetResourceVersion()
		found.ConfiguredBy = secret.GetAnnotations()[annotationWrittenBy]
		found.Replaces = secret.GetAnnotations()[annotationReplaces]
	case !apierrors.IsNotFound(err):
		return agent.Agent{}, unread(err, at)
	}

	connection, err := cluster.connections.Get(ctx, connectionName, metav1.GetOptions{})

	switch {
	case err == nil:
		found.Connection = connectionOf(connection)
	case !apierrors.IsNotFound(err):
		return agent.Agent{}, unread(err, at)
	}

	return found, nil
}

func unread(err error, at agent.Place) error {
	return explain(err, "the runtime agent of the cluster %q could not be read", at.ShootName)
}

// connectionOf reads a CompassConnection; nil if it is being deleted.
func connectionOf(object *unstructured.Unstructured) *agent.Connection {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}

	// A field of another type, from another version of the agent, counts as empty.
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

// brief shortens a text from inside the cluster.
func brief(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), longestProblem)], "")
}

// ConfigureAgent implements agent.Clusters, by server-side apply. It writes only over the version in configuration.Over: a replica that was
// paused in between fails with failure.Transient and reads again.
func (a Access) ConfigureAgent(ctx context.Context, at agent.Place, configuration agent.Configuration) error {
	cluster, err := a.openSession(ctx, at)
	if err != nil {
		return err
	}
	defer cluster.disconnect()

	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}

	if _, err := cluster.namespaces.Get(ctx, at.Namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		_, err = cluster.namespaces.Apply(ctx, at.Namespace, namespaceOf(at), options)
		if err != nil {
			return explain(err, "the namespace %q of the cluster %q could not be created", at.Namespace, at.ShootName)
		}
	}

	if _, err = cluster.secrets.Apply(ctx, agentSecret, secretOf(at, configuration), options); err == nil {
		return nil
	}

	// The API server may quote the rejected object, which contains the token.
	if known, told := errors.AsType[*apierrors.StatusError](err); told {
		status := known.Status()
		status.Message = "its API server rejects it as " + string(status.Reason)
		err = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: status.Reason, Code: status.Code, Message: status.Message}}
	}

	return explain(err, "the runtime agent of the cluster %q could not be configured", at.ShootName)
}

func namespaceOf(at agent.Place) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": at.Namespace},
	}}
}

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

// RemoveConnection implements agent.Clusters. The id protects a connection that the agent has made in the meantime.
func (a Access) RemoveConnection(ctx context.Context, at agent.Place, id string) error {
	cluster, err := a.openSession(ctx, at)
	if err != nil {
		return err
	}
	defer cluster.disconnect()

	err = cluster.connections.Delete(ctx, connectionName, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: new(types.UID(id))},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // replaced by another one
	}

	return explain(err, "the former connection of the runtime agent of the cluster %q could not be removed", at.ShootName)
}
