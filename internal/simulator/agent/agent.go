package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

const (
	secretName     = "compass-agent-configuration"
	connectionName = "compass-connection"
)

// Connector is whom the agent speaks with. Its errors are what the agent tells.
type Connector interface {
	// Connect spends a token.
	Connect(ctx context.Context, url, token string) error
	// Synchronize is what a connected agent does from time to time.
	Synchronize(ctx context.Context, url string) error
}

// Options say in which cluster an agent works and whom it speaks with.
type Options struct {
	Cluster dynamic.Interface
	// Namespace is that of the agent's Secret.
	Namespace string
	Connector Connector
	// Every is how often the agent looks.
	Every time.Duration
	Log   logrus.FieldLogger
}

// Agent works while Run runs.
type Agent struct {
	Options

	// tried is the token that it tried last.
	tried string
}

// New returns an agent that does nothing before Run.
func New(options Options) *Agent { return &Agent{Options: options} }

// Run works until the context ends, which is no error.
func (a *Agent) Run(ctx context.Context) error {
	ticker := time.NewTicker(a.Every)
	defer ticker.Stop()

	for {
		if err := a.look(ctx); err != nil && ctx.Err() == nil {
			a.Log.WithError(err).Debug("the simulated agent looks again")
		}

		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look does what is to be done now.
func (a *Agent) look(ctx context.Context) error {
	url, token, err := a.configuration(ctx)
	if err != nil || token == "" {
		return err
	}

	connection, err := a.connections().Get(ctx, connectionName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		a.tried = token

		_, err = a.connections().Create(ctx, told(newConnection(), "Connected", "ConnectionFailed", "connectionStatus", a.Connector.Connect(ctx, url, token)),
			metav1.CreateOptions{})

		return err
	}

	if err != nil {
		return fmt.Errorf("reading the connection: %w", err)
	}

	switch state, _, _ := unstructured.NestedString(connection.Object, "status", "connectionState"); {
	case state == "ConnectionFailed" && token == a.tried, state == "Synchronized":
		return nil
	case state == "ConnectionFailed":
		a.tried = token
		told(connection, "Connected", "ConnectionFailed", "connectionStatus", a.Connector.Connect(ctx, url, token))
	default:
		told(connection, "Synchronized", "SynchronizationFailed", "synchronizationStatus", a.Connector.Synchronize(ctx, url))
	}

	_, err = a.connections().Update(ctx, connection, metav1.UpdateOptions{})

	return err
}

// configuration is what stands in the Secret, empty when there is none.
func (a *Agent) configuration(ctx context.Context) (url, token string, err error) {
	found, err := a.Cluster.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(a.Namespace).Get(ctx, secretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", "", nil
	}

	if err != nil {
		return "", "", fmt.Errorf("reading the configuration: %w", err)
	}

	var secret corev1.Secret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &secret); err != nil {
		return "", "", fmt.Errorf("reading the configuration: %w", err)
	}

	return string(secret.Data["CONNECTOR_URL"]), string(secret.Data["TOKEN"]), nil
}
