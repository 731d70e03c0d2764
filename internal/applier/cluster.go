package applier

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster is a connection to a cluster. It caches the kinds that the cluster serves, and asks again for a kind that it does not know.
type Cluster struct {
	client client.Client
	config *rest.Config
}

// Connect returns a connection. It makes no call.
func Connect(config *rest.Config) (*Cluster, error) {
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("configuring the connection to the cluster: %w", err)
	}

	connected, err := client.New(config, client.Options{HTTPClient: connection})
	if err != nil {
		return nil, fmt.Errorf("creating a client for the cluster: %w", err)
	}

	return &Cluster{client: connected, config: config}, nil
}
