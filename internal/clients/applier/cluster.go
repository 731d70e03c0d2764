package applier

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster is a connection to a cluster. It caches the kinds that the cluster serves. For a kind that is not in the cache, it asks
// the API server again.
type Cluster struct {
	client client.Client
	config *rest.Config
	http   *http.Client
	// watching is the connection for watches. It is nil if the cluster is not watched.
	watching client.WithWatch
}

// Connect returns a connection to a cluster. It does not call the API server.
func Connect(config *rest.Config) (*Cluster, error) {
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("configuring the connection to the cluster: %w", err)
	}

	connected, err := client.New(config, client.Options{HTTPClient: connection})
	if err != nil {
		return nil, fmt.Errorf("creating a client for the cluster: %w", err)
	}

	return &Cluster{client: connected, config: config, http: connection}, nil
}

// Version returns the API server's version, such as v1.36.0.
func (c *Cluster) Version(ctx context.Context) (string, error) {
	found := version.Info{}

	asked, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, c.http)
	if err == nil {
		var text []byte
		if text, err = asked.RESTClient().Get().AbsPath("/version").Do(ctx).Raw(); err == nil {
			err = json.Unmarshal(text, &found)
		}
	}

	if err != nil {
		return "", (&work{}).explain(err, "the version of the cluster cannot be read", Part{})
	}

	return found.GitVersion, nil
}

// Reach makes a cheap call, which fails while the cluster does not respond or rejects the credentials.
func (c *Cluster) Reach(ctx context.Context) error {
	asked, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, c.http)
	if err == nil {
		err = asked.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	}

	if err != nil {
		return (&work{}).explain(err, "the cluster cannot be reached", Part{})
	}

	return nil
}

// ConnectWatching returns a connection that Watches can use. A watch lasts for minutes, so the configuration for watches must
// have no timeout and no limit on concurrent calls. ConnectWatching does not call the API server.
func ConnectWatching(calls, watches *rest.Config) (*Cluster, error) {
	cluster, err := Connect(calls)
	if err != nil {
		return nil, err
	}

	connection, err := rest.HTTPClientFor(watches)
	if err != nil {
		return nil, fmt.Errorf("configuring the watches of the cluster: %w", err)
	}

	cluster.watching, err = client.NewWithWatch(watches, client.Options{HTTPClient: connection, Mapper: cluster.client.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("creating a client for the watches of the cluster: %w", err)
	}

	return cluster, nil
}
