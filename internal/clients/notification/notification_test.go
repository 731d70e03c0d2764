package notification_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakenotification"
)

func config(address string) notification.Config {
	config := fakenotification.Config(address + "/")
	config.Timeout = 10 * time.Second

	return config
}

func start(t *testing.T) (*fakenotification.Service, string) {
	t.Helper()

	simulated := fakenotification.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	return simulated, server.URL
}

// message returns a message about event upgrade-1. Its time is in UTC+1, because the client must convert it to UTC.
func message(action notification.Action, minute int) notification.Message {
	return notification.Message{
		EventID: "upgrade-1", InstanceID: "instance-1", Type: notification.Kyma, Action: action,
		At: time.Date(2030, 1, 2, 3, minute, 5, 6000, time.FixedZone("", 3600)),
	}
}

func TestMessages(t *testing.T) {
	simulated, address := start(t)
	client := notification.New(config(address), http.DefaultTransport)

	want := func(reason string, tenant notification.Tenant) {
		t.Helper()

		kind, tenants := simulated.Tenants("upgrade-1")
		if diff := cmp.Diff(map[string]notification.Tenant{"instance-1": tenant}, tenants); diff != "" || kind != notification.Kyma {
			t.Errorf("%s: type %q, -want +got\n%s", reason, kind, diff)
		}
	}

	send := func(sent notification.Message) {
		t.Helper()

		if err := client.Send(t.Context(), sent); err != nil {
			t.Error(err)
		}
	}

	send(message(notification.ActionCreate, 4))
	send(message(notification.ActionCreate, 4))
	want("a repeated creation succeeds", notification.Tenant{InstanceID: "instance-1", Start: "2030-01-02 02:04:05"})

	send(message(notification.ActionBegin, 4))
	want("begun", notification.Tenant{InstanceID: "instance-1", Start: "2030-01-02 02:04:05", State: notification.UnderMaintenance})

	send(message(notification.ActionFinish, 30))
	want("finished", notification.Tenant{
		InstanceID: "instance-1", Start: "2030-01-02 02:04:05", End: "2030-01-02 02:30:05", State: notification.Finished,
	})

	send(message(notification.ActionCancel, 31))

	if diff := cmp.Diff([]string{"create", "create", "1", "2", "cancel"}, simulated.Received()["upgrade-1"]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestUnknownEvents(t *testing.T) {
	_, address := start(t)
	client := notification.New(config(address), http.DefaultTransport)

	if err := client.Send(t.Context(), message(notification.ActionCancel, 1)); err != nil {
		t.Errorf("an unknown event needs no cancellation, but: %v", err)
	}

	if err := client.Send(t.Context(), message(notification.ActionFinish, 1)); !failure.Is(err, failure.NotFound) {
		t.Errorf("an update of an unknown event: %v", err)
	}
}

func TestCredentialsAreOptional(t *testing.T) {
	_, address := start(t)

	for reason, c := range map[string]struct {
		user string
		want failure.Kind
	}{
		"none":  {"", ""},
		"right": {fakenotification.User, ""},
		"wrong": {"somebody", failure.Transient},
	} {
		settings := config(address)
		settings.User = c.user

		err := notification.New(settings, http.DefaultTransport).Send(t.Context(), message(notification.ActionCreate, 1))
		if err == nil && c.want != "" || err != nil && !failure.Is(err, c.want) {
			t.Errorf("%s credentials: %v", reason, err)
		}
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	server := httptest.NewTLSServer(fakenotification.New())
	t.Cleanup(server.Close)

	// Use a separate transport: another test may have made the default transport trust the server.
	err := notification.New(config(server.URL), &http.Transport{}).Send(t.Context(), message(notification.ActionCreate, 1))
	if !failure.Is(err, failure.Transient) || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("a server with an unknown certificate: %v", err)
	}

	if err := notification.New(config(server.URL), server.Client().Transport).Send(t.Context(), message(notification.ActionCreate, 1)); err != nil {
		t.Errorf("a server with a known certificate: %v", err)
	}
}

func TestConfig(t *testing.T) {
	cases := map[string]struct {
		change func(*notification.Config)
		want   string
	}{
		"Valid":       {func(*notification.Config) {}, ""},
		"Off":         {func(c *notification.Config) { *c = notification.Config{} }, ""},
		"Disabled":    {func(c *notification.Config) { *c = notification.Config{URL: "x", Disabled: true} }, ""},
		"NoUser":      {func(c *notification.Config) { c.User, c.Password = "", "" }, ""},
		"URL":         {func(c *notification.Config) { c.URL = "notification" }, "APP_NOTIFICATION_URL: must be an http or https URL"},
		"Credentials": {func(c *notification.Config) { c.Password = "" }, "APP_NOTIFICATION_USER and APP_NOTIFICATION_PASSWORD: set both or neither"},
		"Calls":       {func(c *notification.Config) { c.Calls = 0 }, "APP_NOTIFICATION_CALLS and APP_NOTIFICATION_TIMEOUT: must be positive"},
		"Timeout":     {func(c *notification.Config) { c.Timeout = time.Hour }, "the timeout at most 5m"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			settings := config("http://notification.example.com")
			c.change(&settings)

			err := settings.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
