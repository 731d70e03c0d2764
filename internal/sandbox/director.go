package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/serving"
	simulator "github.com/environment-broker/environment-broker/internal/simulator/director"
)

// directorCredentials is the file of the credentials for the simulated Director, in the folder.
const directorCredentials = "director-credentials.yaml"

// startDirector binds a simulated Director to a free address on the loopback, and writes down how to get in.
func startDirector(ctx context.Context, config Config) (*serving.Server, error) {
	director, err := simulator.New(simulator.Options{File: filepath.Join(config.Dir, "director.json")})
	if err != nil {
		return nil, err
	}

	server, err := serving.Listen(ctx, "127.0.0.1:0", director, 0)
	if err != nil {
		return nil, fmt.Errorf("starting the simulated Director: %w", err)
	}

	credentials := fmt.Sprintf("data:\n  client_id: %s\n  client_secret: %s\n  tokens_endpoint: http://%s%s\n",
		simulator.DefaultClientID, simulator.DefaultClientSecret, server.Address(), simulator.TokenPath)

	if err := os.WriteFile(filepath.Join(config.Dir, directorCredentials), []byte(credentials), 0o600); err != nil {
		return nil, fmt.Errorf("writing the credentials for the simulated Director: %w", err)
	}

	return server, nil
}

// directorAddress is where the simulated Director answers, or empty.
func (s surroundings) directorAddress() string {
	if s.director == nil {
		return ""
	}

	return s.director.Address()
}

// directorParts are what runs for the simulated Director.
func (s surroundings) directorParts() []lifecycle.Part {
	if s.director == nil {
		return nil
	}

	return []lifecycle.Part{{Name: "director", Run: s.director.Run}}
}
