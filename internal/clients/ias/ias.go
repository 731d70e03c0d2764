// Package ias removes service providers from SAP Cloud Identity Services, Identity Authentication (IAS). The Kyma Environment
// Broker registered a service provider for each runtime's Grafana; this broker registers none.
package ias

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

// Config configures the connection to IAS. An empty URL switches IAS off.
type Config struct {
	URL        string        `env:"URL"         help:"URL of Identity Authentication, where the Kyma Environment Broker registered service providers; the deletion of an instance removes its service provider; empty turns the integration off"`
	UserID     string        `env:"USER_ID"     help:"user for Identity Authentication"`
	UserSecret secret.String `env:"USER_SECRET" help:"password of the user"`
	Timeout    time.Duration `env:"TIMEOUT"     help:"timeout of one call"`
	Calls      int           `env:"CALLS"       help:"maximum number of concurrent calls, per replica"`
}

// DefaultConfig returns the defaults, with IAS turned off.
func DefaultConfig() Config { return Config{Timeout: time.Minute, Calls: 5} }

// Check reports all invalid settings in one error, which names their variables.
func (c Config) Check() error {
	if c.URL == "" {
		return nil
	}

	return errors.Join(
		upstream.CheckURL("APP_IAS_URL", c.URL),
		failure.Unless(c.UserID != "" && c.UserSecret != "", "APP_IAS_URL: also set APP_IAS_USER_ID and APP_IAS_USER_SECRET"),
		failure.Unless(c.Calls > 0 && c.Timeout > 0, "APP_IAS_CALLS and APP_IAS_TIMEOUT: must be positive"),
	)
}

// Company contains the service providers of a company, as listed by IAS, in its wire format.
type Company struct {
	ServiceProviders []ServiceProvider `json:"service_providers"`
}

// ServiceProvider is a service provider in its wire format.
type ServiceProvider struct {
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
}

// DisplayName returns the display name of the service provider for the instance's Grafana. The format comes from the Kyma
// Environment Broker.
func DisplayName(instanceID string) string { return "SKR Grafana (instanceID: " + instanceID + ")" }

// Client calls IAS. It is safe for concurrent use.
type Client struct {
	rest *restclient.Client
	url  string
}

// New returns a client that sends its requests through the transport.
func New(config Config, transport http.RoundTripper) *Client {
	return &Client{url: strings.TrimSuffix(config.URL, "/"), rest: restclient.New(restclient.Options{
		Title: "IAS", Component: failure.ComponentIAS, Settings: "APP_IAS_USER_ID and APP_IAS_USER_SECRET",
		Transport: transport, Timeout: config.Timeout,
		Authorize: func(request *http.Request) { request.SetBasicAuth(config.UserID, config.UserSecret.Reveal()) },
	})}
}

// Probe returns an error unless IAS responds.
func (c *Client) Probe(ctx context.Context) error { return c.rest.Probe(ctx, c.url) }

// Remove removes the service provider of the instance's Grafana. It succeeds if the service provider does not exist.
func (c *Client) Remove(ctx context.Context, instanceID string) error {
	providers, err := c.providers(ctx, DisplayName(instanceID))
	if err != nil {
		return err
	}

	for _, id := range providers {
		err := c.rest.Do(ctx, restclient.Request{
			Method: http.MethodPut, URL: c.url + "/service/sps/delete?sp_id=" + url.QueryEscape(id), Action: "remove the service provider",
		})
		if err != nil && !failure.Is(err, failure.NotFound) {
			return err
		}
	}

	return nil
}

// providers returns the IDs of the service providers with the display name. IAS lists all service providers of the company, with their
// whole configuration.
func (c *Client) providers(ctx context.Context, displayName string) (ids []string, err error) {
	err = c.rest.Do(ctx, restclient.Request{
		Method: http.MethodGet, URL: c.url + "/service/company/global", Action: "list the service providers",
		List: &restclient.List{Field: "service_providers", Add: func(decode func(into any) error) error {
			var provider ServiceProvider
			if err := decode(&provider); err != nil {
				return err
			}

			if provider.DisplayName == displayName {
				ids = append(ids, provider.ID)
			}

			return nil
		}},
	})

	return ids, err
}
