package fakeagent

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	configurationName = "compass-agent-configuration"

	// credentialsName is the name of the Secret that the agent writes. A real agent stores its certificate there; the simulated
	// agent stores a hash of the exchanged token.
	credentialsName  = "compass-agent-credentials"
	credentialsToken = "TOKEN_SHA256"
)

// configuration holds the contents and the namespace of the agent's configuration Secret. An empty token means that the cluster
// has no such Secret.
type configuration struct {
	namespace, url, token string
}

// hash returns a digest that identifies the token without revealing it.
func (c configuration) hash() string {
	sum := sha256.Sum256([]byte(c.token))

	return hex.EncodeToString(sum[:])
}

func (a *Agent) secrets(namespace string) dynamic.ResourceInterface {
	return a.Cluster.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
}

// configuration reads the newest configuration Secret in any namespace, because the agent does not know which namespace Kyma
// uses. It returns the zero value if the agent is not configured yet.
func (a *Agent) configuration(ctx context.Context) (configuration, error) {
	list, err := a.secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + configurationName})
	if err != nil {
		return configuration{}, fmt.Errorf("finding the configuration: %w", err)
	}

	// Filter by name again: the fake API servers of some tests ignore the field selector.
	found := slices.DeleteFunc(list.Items, func(secret unstructured.Unstructured) bool { return secret.GetName() != configurationName })
	if len(found) == 0 {
		return configuration{}, nil
	}

	latest := slices.MaxFunc(found, func(a, b unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})

	data, err := dataOf(&latest)
	if err != nil {
		return configuration{}, err
	}

	return configuration{latest.GetNamespace(), data["CONNECTOR_URL"], data["TOKEN"]}, nil
}

// credentialsFor reports whether the cluster has credentials for the configured token, which means that the token was exchanged.
func (a *Agent) credentialsFor(ctx context.Context, configured configuration) (bool, error) {
	found, err := a.secrets(configured.namespace).Get(ctx, credentialsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}

	if err != nil {
		return false, fmt.Errorf("reading the credentials: %w", err)
	}

	data, err := dataOf(found)

	return data[credentialsToken] == configured.hash(), err
}

// keepCredentials records that the token was exchanged. It replaces the credentials of an earlier token.
func (a *Agent) keepCredentials(ctx context.Context, configured configuration) error {
	hash := base64.StdEncoding.EncodeToString([]byte(configured.hash()))
	wanted := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": credentialsName, "namespace": configured.namespace},
		"data": map[string]any{credentialsToken: hash},
	}}

	_, err := a.secrets(configured.namespace).Create(ctx, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = a.secrets(configured.namespace).Update(ctx, wanted, metav1.UpdateOptions{})
	}

	return failure.While(err, "writing the credentials")
}

// dataOf returns the data of a Secret as strings.
func dataOf(object *unstructured.Unstructured) (map[string]string, error) {
	var secret corev1.Secret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &secret); err != nil {
		return nil, fmt.Errorf("reading the Secret %s: %w", object.GetName(), err)
	}

	data := map[string]string{}
	for key, value := range secret.Data {
		data[key] = string(value)
	}

	return data, nil
}
