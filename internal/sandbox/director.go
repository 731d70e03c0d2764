package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// directorCredentials is the file of the credentials for the simulated Director, in the folder.
const directorCredentials = "director-credentials.yaml"

// startDirector binds a simulated Director to a free address on the loopback, writes down how to get in, and returns its address and what
// runs for it: Director itself, and the agents that connect by way of it.
func startDirector(ctx context.Context, config Config, api client.WithWatch, log logrus.FieldLogger,
) (address string, parts []lifecycle.Part, err error) {
	director, err := simulator.New(simulator.Options{File: filepath.Join(config.Dir, "director.json")})
	if err != nil {
		return "", nil, err
	}

	server, err := httpserver.Listen(ctx, "127.0.0.1:0", director, 0)
	if err != nil {
		return "", nil, fmt.Errorf("starting the simulated Director: %w", err)
	}

	credentials := fmt.Sprintf("data:\n  client_id: %s\n  client_secret: %s\n  tokens_endpoint: http://%s%s\n",
		simulator.DefaultClientID, simulator.DefaultClientSecret, server.Address(), simulator.TokenPath)

	if err := os.WriteFile(filepath.Join(config.Dir, directorCredentials), []byte(credentials), 0o600); err != nil {
		return "", nil, errors.Join(fmt.Errorf("writing the credentials for the simulated Director: %w", err), server.Close())
	}

	inside := clusteraccess.New(gardener.New(api, gardenlet.Namespace(fakegarden.DefaultProject)))
	employer := agents{director: director, clusters: inside, log: log.WithField("service", "agents")}

	return server.Address(), []lifecycle.Part{{Name: "director", Run: server.Run}, {Name: "agents", Run: employer.run}}, nil
}
