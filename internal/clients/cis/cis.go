package cis

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

const (
	// eventType is the type of events about deleted subaccounts.
	eventType = "Subaccount_Deletion"
	// pageSize is the number of events in a page. CIS returns at most 150.
	pageSize = 150
	// maxPages is the maximum number of pages in a read. A read of more than 1.5 million events fails.
	maxPages = 10_000
)

// The versions of the event service.
const (
	Version1 = "1.0"
	Version2 = "2.0"
)

// Config configures the connection to CIS. An empty URL switches CIS off.
type Config struct {
	URL          string        `env:"EVENT_SERVICE_URL" help:"URL of the event service of SAP Cloud Management (CIS), which reports deleted subaccounts; empty turns the subaccounts job off"`
	Version      string        `env:"VERSION"           help:"version of the event service: 1.0 or 2.0"`
	AuthURL      string        `env:"AUTH_URL"          help:"URL of the token endpoint, without /oauth/token"`
	ClientID     string        `env:"CLIENT_ID"         help:"client ID for the token endpoint"`
	ClientSecret secret.String `env:"CLIENT_SECRET"     help:"client secret for the token endpoint"`
	Interval     time.Duration `env:"INTERVAL"          help:"interval between two reads of the events"`
	Timeout      time.Duration `env:"TIMEOUT"           help:"timeout of one call"`
}

// DefaultConfig returns the defaults, with CIS turned off.
func DefaultConfig() Config {
	return Config{Version: Version2, Interval: time.Hour, Timeout: 30 * time.Second}
}

// Check reports all invalid settings in one error, which names their variables.
func (c Config) Check() error {
	if c.URL == "" {
		return nil
	}

	return errors.Join(
		upstream.CheckURL("APP_CIS_EVENT_SERVICE_URL", c.URL),
		upstream.CheckURL("APP_CIS_AUTH_URL", c.AuthURL),
		failure.Unless(c.Version == Version1 || c.Version == Version2, "APP_CIS_VERSION: must be %s or %s", Version1, Version2),
		failure.Unless(c.ClientID != "" && c.ClientSecret != "", "APP_CIS_EVENT_SERVICE_URL: also set APP_CIS_CLIENT_ID and APP_CIS_CLIENT_SECRET"),
		failure.Unless(c.Interval >= time.Minute && c.Timeout > 0, "APP_CIS_INTERVAL: must be at least 1m; APP_CIS_TIMEOUT: must be positive"),
	)
}

// Client calls the event service of CIS. It is safe for concurrent use.
type Client struct {
	rest   *restclient.Client
	config Config
}

// New returns a client that sends its requests through the transport.
func New(config Config, transport http.RoundTripper) *Client {
	return &Client{config: config, rest: restclient.New(restclient.Options{
		Title: "CIS", Component: failure.ComponentCIS, Settings: "APP_CIS_AUTH_URL, APP_CIS_CLIENT_ID and APP_CIS_CLIENT_SECRET",
		Transport: transport, Timeout: config.Timeout,
		Grant: &restclient.Grant{
			URL: strings.TrimSuffix(config.AuthURL, "/") + "/oauth/token", Type: "client_credentials",
			ClientID: config.ClientID, ClientSecret: config.ClientSecret,
		},
	})}
}

// Probe returns an error unless CIS responds.
func (c *Client) Probe(ctx context.Context) error { return c.rest.Probe(ctx, c.config.URL) }

// Event reports the deletion of a subaccount. At is the time of the deletion, or zero in version 1.0 of the event service.
type Event struct {
	Subaccount string
	At         time.Time
}

// page is a page of events in its wire format. Times are milliseconds since 1970.
type page struct {
	TotalPages int `json:"totalPages"`
	Events     []struct {
		CreationTime int64  `json:"creationTime"`
		EntityID     string `json:"entityId"`
		EventType    string `json:"eventType"`
	} `json:"events"`
}

// DeletedSubaccounts returns the deletions of subaccounts since the given time, newest first. It starts with the newest events,
// so it need not read the whole history. Events that arrive during the read move others to later pages: some may be returned
// twice, but none is missing. In version 1.0, DeletedSubaccounts returns all deletions; see deletedInVersion1.
func (c *Client) DeletedSubaccounts(ctx context.Context, since time.Time) ([]Event, error) {
	if c.config.Version == Version1 {
		return c.deletedInVersion1(ctx)
	}

	var found []Event

	for number := range maxPages {
		var page page

		query := url.Values{
			"eventType": {eventType}, "pageSize": {strconv.Itoa(pageSize)}, "pageNum": {strconv.Itoa(number)},
			"sortField": {"creationTime"}, "sortOrder": {"DESC"},
		}
		if err := c.rest.Do(ctx, restclient.Request{
			Method: http.MethodGet, URL: strings.TrimSuffix(c.config.URL, "/") + "/events/v1/events/central?" + query.Encode(),
			Action: "list the deleted subaccounts", Into: &page,
		}); err != nil {
			return nil, err
		}

		for _, event := range page.Events {
			at := time.UnixMilli(event.CreationTime).UTC()
			if at.Before(since) {
				return found, nil
			}

			if event.EventType == eventType && event.EntityID != "" {
				found = append(found, Event{Subaccount: event.EntityID, At: at})
			}
		}

		if len(page.Events) == 0 || number+1 >= page.TotalPages {
			return found, nil
		}
	}

	return nil, failure.New(failure.Permanent, "CIS returned more than %d pages of events", maxPages)
}
