package runtimeaccess

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/clusterclient"
)

// connect returns a client of the API server. Its connections are its own and last until disconnect at most.
func connect(config *rest.Config) (client *http.Client, disconnect func(), err error) {
	transport, disconnect, err := clusterclient.Transport(config)
	if err != nil {
		return nil, nil, unusable("its certificates or credentials cannot be used")
	}

	return &http.Client{
		Transport: transport, Timeout: config.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // no stranger gets the credentials
	}, disconnect, nil
}

// askVersion fails unless the API server tells its version.
func askVersion(ctx context.Context, client *http.Client, config *rest.Config) error {
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("reading the address of the API server: %w", err)
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.JoinPath("version").String(), nil)
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}

	response, err := client.Do(request)
	if err != nil {
		return err
	}

	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("reading the answer of the API server: %w", err)
	}

	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server answers with %s", response.Status)
	}

	return nil
}
