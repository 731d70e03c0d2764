package notification

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

// The paths of the notification service's API.
const (
	PathCreate = "/createMaintenanceEvent"
	PathUpdate = "/updateMaintenanceEvent"
	PathCancel = "/cancelMaintenanceEvent"
)

// TimeLayout is the format of times. All times are in UTC.
const TimeLayout = "2006-01-02 15:04:05"

// Type is the object of the maintenance, such as the cluster or Kyma.
type Type string

// The types of events.
const (
	Kubernetes Type = "0"
	Kyma       Type = "1"
)

// State is the state of a tenant's maintenance. It is empty before the maintenance begins.
type State string

// The states of a maintenance.
const (
	UnderMaintenance State = "1"
	Finished         State = "2"
	Canceled         State = "3"
)

// Event is the body of all calls, in its wire format. Updates have no type, and cancellations have only an ID.
type Event struct {
	// ID identifies the event. Repeated calls have the same ID.
	ID      string   `json:"orchestrationId"`
	Type    Type     `json:"eventType,omitempty"`
	Tenants []Tenant `json:"tenants,omitempty"`
}

// Tenant describes the maintenance of an instance, in its wire format. Times have the format TimeLayout.
type Tenant struct {
	InstanceID string `json:"instanceId"`
	Start      string `json:"startDateTime,omitempty"`
	End        string `json:"endDateTime,omitempty"`
	State      State  `json:"eventState,omitempty"`
}

// Client calls the notification service. It is safe for concurrent use.
type Client struct {
	rest *restclient.Client
	url  string
}

// New returns a client that sends its requests through the transport. The configuration must be valid.
func New(config Config, transport http.RoundTripper) *Client {
	options := restclient.Options{
		Title: "the notification service", Component: failure.ComponentNotification,
		Settings:  "APP_NOTIFICATION_USER and APP_NOTIFICATION_PASSWORD",
		Transport: transport, Timeout: config.Timeout,
	}

	if config.User != "" {
		options.Authorize = func(request *http.Request) { request.SetBasicAuth(config.User, config.Password.Reveal()) }
	}

	return &Client{url: strings.TrimSuffix(config.URL, "/"), rest: restclient.New(options)}
}

// Probe returns an error unless the service responds.
func (c *Client) Probe(ctx context.Context) error { return c.rest.Probe(ctx, c.url) }

// Create creates an event. It succeeds if the event already exists, because an earlier call may have created it.
func (c *Client) Create(ctx context.Context, event Event) error {
	err := c.call(ctx, http.MethodPost, PathCreate, "create the maintenance event", event)
	if failure.Is(err, failure.Conflict) {
		return nil
	}

	return err
}

// Update changes the maintenance of the tenants that the given event contains. Other tenants of the stored event stay unchanged.
func (c *Client) Update(ctx context.Context, event Event) error {
	return c.call(ctx, http.MethodPatch, PathUpdate, "update the maintenance event", event)
}

// Cancel cancels the event. It succeeds if the service does not know the event.
func (c *Client) Cancel(ctx context.Context, id string) error {
	err := c.call(ctx, http.MethodPatch, PathCancel, "cancel the maintenance event", Event{ID: id})
	if failure.Is(err, failure.NotFound) {
		return nil
	}

	return err
}

func (c *Client) call(ctx context.Context, method, path, action string, event Event) error {
	return c.rest.Do(ctx, restclient.Request{Method: method, URL: c.url + path, Action: action, Body: event})
}

// Action is a change to an event of the notification service that announces an upgrade.
type Action string

// The actions. An event is created, begins, and then either finishes or is canceled.
const (
	ActionCreate Action = "create"
	ActionBegin  Action = "begin"
	ActionFinish Action = "finish"
	ActionCancel Action = "cancel"
)

// Message is a change to the maintenance event for an upgrade. The instance is the only tenant of the event.
type Message struct {
	// EventID is the ID of the upgrade.
	EventID    string
	InstanceID string
	Type       Type
	Action     Action
	// At is the start of the maintenance or, for ActionFinish, its end. ActionCancel ignores it.
	At time.Time
}

// Send makes the call that the message describes. Repeated calls have the same content.
func (c *Client) Send(ctx context.Context, message Message) error {
	at := message.At.UTC().Format(TimeLayout)
	update := func(tenant Tenant) error { return c.Update(ctx, Event{ID: message.EventID, Tenants: []Tenant{tenant}}) }

	switch message.Action {
	case ActionCreate:
		return c.Create(ctx, Event{ID: message.EventID, Type: message.Type, Tenants: []Tenant{{InstanceID: message.InstanceID, Start: at}}})
	case ActionBegin:
		return update(Tenant{InstanceID: message.InstanceID, Start: at, State: UnderMaintenance})
	case ActionFinish:
		return update(Tenant{InstanceID: message.InstanceID, End: at, State: Finished})
	case ActionCancel:
		return c.Cancel(ctx, message.EventID)
	default:
		return failure.New(failure.Internal, "unknown action %q of a maintenance event", message.Action)
	}
}
