package service

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/environment-broker/environment-broker/broker/reconcile"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/reload"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// upstreamOf returns the Provisioner as an upstream system, which has a limit on concurrent calls, a circuit breaker and metrics.
func upstreamOf(config Provisioner) *upstream.System {
	return upstream.New(upstream.Options{
		Name: "provisioner", Title: "the Provisioner", Component: failure.ComponentProvisioner,
		Calls: config.Calls, Variable: "APP_PROVISIONER_CALLS",
	})
}

// provisionerClient returns clients for the Provisioner's GraphQL API and operator API. They respect the call limit and the
// circuit breaker of system. Certificates and keys are reloaded when their files change. Errors name the environment variable,
// but never quote the URL, because it may contain a password.
func provisionerClient(config Provisioner, system *upstream.System, files *reload.Watcher,
) (*provisionerclient.Client, *reconcile.Provisioner, error) {
	address, err := url.Parse(config.URL)
	if err != nil {
		return nil, nil, errors.New("APP_PROVISIONER_URL: malformed") // do not wrap the cause: it quotes the URL with its credentials
	}

	if config.User != "" {
		address.User = url.UserPassword(config.User, config.Password.Reveal())
	}

	transport, err := reload.ClientTLS{
		CAFile: config.CAFile, CertFile: config.CertFile, KeyFile: config.KeyFile,
		IdleConnections: config.Calls + 1, // for all concurrent calls and the feed
	}.Transport(files, "provisioner")
	if err != nil {
		return nil, nil, fmt.Errorf("APP_PROVISIONER_CA_FILE, APP_PROVISIONER_CERT_FILE, APP_PROVISIONER_KEY_FILE: %w", err)
	}

	client, err := provisionerclient.New(provisionerclient.Options{
		URL: address.String(), Timeout: config.Timeout, WrapTransport: system.Transport,
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: upstream.NoRedirects},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("APP_PROVISIONER_URL: %w", err)
	}

	return client, reconcile.NewProvisioner(address, system.Transport(transport)), nil
}
