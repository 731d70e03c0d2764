package director

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// ClientCredentials authenticate the Provisioner at Director's token endpoint (OAuth 2.0 client credentials).
type ClientCredentials struct {
	ClientID       string
	ClientSecret   secret.String
	TokensEndpoint string
}

// Credentials provides the current client credentials. Operators may renew them while the Provisioner runs, so they are read
// again for each token request. Implementations never quote a secret in errors.
type Credentials interface {
	Read(ctx context.Context) (ClientCredentials, error)
}

// The keys of the credentials in a Secret and in a file, as Kyma Provisioner expects them.
const (
	keyClientID       = "client_id"
	keyClientSecret   = "client_secret"
	keyTokensEndpoint = "tokens_endpoint"
)

// credentialsOf returns the credentials in the map, or an error if one is missing or the endpoint is not a valid URL. Errors name
// the keys but never a value.
func credentialsOf(values map[string]string) (ClientCredentials, error) {
	found := ClientCredentials{
		ClientID: values[keyClientID], ClientSecret: secret.String(values[keyClientSecret]), TokensEndpoint: values[keyTokensEndpoint],
	}

	if found.ClientID == "" || found.ClientSecret == "" {
		return ClientCredentials{}, fmt.Errorf("%s or %s is missing", keyClientID, keyClientSecret)
	}

	if err := checkAddress(found.TokensEndpoint); err != nil {
		return ClientCredentials{}, fmt.Errorf("%s %w", keyTokensEndpoint, err)
	}

	return found, nil
}

// File is the path of a YAML file with the credentials. Its data field has the keys client_id, client_secret and tokens_endpoint.
type File string

// Read implements Credentials.
func (f File) Read(context.Context) (ClientCredentials, error) {
	text, err := os.ReadFile(string(f))
	if err != nil {
		return ClientCredentials{}, fmt.Errorf("reading the credentials for Director: %w", err)
	}

	credentials, err := ParseCredentials(text)

	return credentials, failure.While(err, "reading the credentials for Director from %s", string(f))
}

// ParseCredentials parses the content of a File. Its errors never contain a value.
func ParseCredentials(text []byte) (ClientCredentials, error) {
	var content struct {
		Data map[string]string `json:"data"`
	}

	// The parser's error is dropped because it may quote a secret.
	if yaml.Unmarshal(text, &content) != nil {
		return ClientCredentials{}, errors.New("it must be a YAML file whose data field maps names to strings")
	}

	return credentialsOf(content.Data)
}

// Secret is a Kubernetes Secret with the keys client_id, client_secret and tokens_endpoint.
type Secret struct {
	API             client.Reader
	Namespace, Name string
}

// InCluster returns the Secret in the cluster that the Provisioner runs in. Outside a cluster, as in development, it uses the
// current context of the user's kubeconfig. InCluster only creates the client; Read reads the Secret.
func InCluster(namespace, name string) (Secret, error) {
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	}

	if err != nil {
		return Secret{}, fmt.Errorf("loading the Kubernetes client configuration for reading Secret %s/%s: %w", namespace, name, err)
	}

	api, err := client.New(config, client.Options{})
	if err != nil {
		return Secret{}, fmt.Errorf("creating the client to read Secret %s/%s: %w", namespace, name, err)
	}

	return Secret{API: api, Namespace: namespace, Name: name}, nil
}

// Read implements Credentials.
func (s Secret) Read(ctx context.Context) (ClientCredentials, error) {
	var found corev1.Secret
	if err := s.API.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, &found); err != nil {
		return ClientCredentials{}, fmt.Errorf("reading the credentials for Director from Secret %s/%s: %w", s.Namespace, s.Name, err)
	}

	values := make(map[string]string, len(found.Data))
	for key, value := range found.Data {
		values[key] = string(value)
	}

	credentials, err := credentialsOf(values)

	return credentials, failure.While(err, "reading the credentials for Director from Secret %s/%s", s.Namespace, s.Name)
}
