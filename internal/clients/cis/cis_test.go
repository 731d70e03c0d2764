package cis_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/cis"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecis"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func newClient(t *testing.T) (*fakecis.CIS, *cis.Client) {
	t.Helper()

	simulated := fakecis.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := fakecis.Config(server.URL)
	config.Timeout = 2 * time.Second

	return simulated, cis.New(config, http.DefaultTransport)
}

// TestPages reads several pages of events. Without events, the result is empty. A read ends with the page that contains older events.
func TestPages(t *testing.T) {
	simulated, client := newClient(t)

	if found, err := client.DeletedSubaccounts(t.Context(), time.Time{}); err != nil || len(found) != 0 {
		t.Fatalf("without events: got %v, %v", found, err)
	}

	const many = 400 // three pages
	for i := range many {
		simulated.Delete(fmt.Sprintf("sub-%03d", i), began.Add(time.Duration(i)*time.Minute))
	}

	simulated.Add("Subaccount_Creation", "created", began.Add(time.Hour))

	found, err := client.DeletedSubaccounts(t.Context(), time.Time{})
	if err != nil || len(found) != many || found[0] != (cis.Event{Subaccount: "sub-399", At: began.Add(399 * time.Minute)}) || found[many-1].Subaccount != "sub-000" {
		t.Errorf("got %d events, %v", len(found), err)
	}

	before := len(simulated.Operations())

	found, err = client.DeletedSubaccounts(t.Context(), began.Add(390*time.Minute))
	if err != nil || len(found) != 10 || found[9].Subaccount != "sub-390" {
		t.Errorf("got %v, %v; the time is included", found, err)
	}

	if calls := len(simulated.Operations()) - before; calls != 1 {
		t.Errorf("read %d pages for 10 events", calls)
	}
}

// TestVersion1 reads several pages of events, which have no times.
func TestVersion1(t *testing.T) {
	simulated := fakecis.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := fakecis.Config(server.URL)
	config.Version = cis.Version1
	client := cis.New(config, http.DefaultTransport)

	if found, err := client.DeletedSubaccounts(t.Context(), began); err != nil || len(found) != 0 {
		t.Fatalf("without events: got %v, %v", found, err)
	}

	const many = 2500 // three pages
	for i := range many {
		simulated.Delete(fmt.Sprintf("sub-%04d", i), began)
	}

	simulated.Add("Subaccount_Creation", "created", began)

	found, err := client.DeletedSubaccounts(t.Context(), began.AddDate(1, 0, 0))
	if err != nil || len(found) != many || found[0] != (cis.Event{Subaccount: "sub-0000"}) || found[many-1].Subaccount != "sub-2499" {
		t.Errorf("got %d events, %v", len(found), err)
	}

	simulated.Inject(simulator.Fault{Operation: "listEvents1", Status: http.StatusServiceUnavailable})

	if found, err := client.DeletedSubaccounts(t.Context(), began); failure.KindOf(err) != failure.Transient || found != nil {
		t.Errorf("a page cannot be read: got %d events, %v", len(found), err)
	}
}

// TestFaults has a case for each row of the table in docs/operator/jobs.md.
func TestFaults(t *testing.T) {
	cases := map[string]struct {
		fault simulator.Fault
		kind  failure.Kind // empty: the call succeeds
		shown string
	}{
		"away":                          {simulator.Fault{Unsent: true, Times: -1}, failure.Transient, "CIS cannot be reached"},
		"lost response":                 {simulator.Fault{Lost: true, Times: -1}, failure.Transient, "CIS"},
		"slow":                          {simulator.Fault{Delay: time.Minute, Times: -1}, failure.Transient, "CIS did not respond within 2s"},
		"no JSON":                       {simulator.Fault{Operation: "listEvents", Body: "<html>"}, failure.Transient, "not the expected JSON"},
		"401 because a token has ended": {simulator.Fault{Operation: "listEvents", Status: http.StatusUnauthorized}, "", ""},
		"401 with a new token":          {simulator.Fault{Operation: "listEvents", Status: http.StatusUnauthorized, Times: -1}, failure.Transient, "APP_CIS_AUTH_URL"},
		"429 with Retry-After":          {simulator.Fault{Operation: "listEvents", Status: http.StatusTooManyRequests, RetryAfter: 42}, failure.Transient, "429"},
		"503 with Retry-After":          {simulator.Fault{Operation: "listEvents", Status: http.StatusServiceUnavailable, RetryAfter: 42}, failure.Transient, "503"},
		"400 and 409":                   {simulator.Fault{Operation: "listEvents", Status: http.StatusBadRequest}, failure.Permanent, "400"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated, client := newClient(t)
			simulated.Delete("sub-1", began)
			simulated.Inject(c.fault)

			found, err := client.DeletedSubaccounts(t.Context(), time.Time{})
			if c.kind == "" {
				if err != nil || len(found) != 1 {
					t.Errorf("got %v, %v", found, err)
				}

				return
			}

			if failure.KindOf(err) != c.kind || !strings.Contains(failure.Of(err).Text, c.shown) || found != nil {
				t.Errorf("got %v, %q of kind %s", found, failure.Of(err).Text, failure.KindOf(err))
			}
		})
	}
}

func TestCheck(t *testing.T) {
	valid := fakecis.Config("https://cis.example.com")

	cases := map[string]struct {
		change func(*cis.Config)
		want   string
	}{
		"off":      {func(c *cis.Config) { *c = cis.Config{} }, ""},
		"valid":    {func(*cis.Config) {}, ""},
		"address":  {func(c *cis.Config) { c.URL = "cis.example.com" }, "APP_CIS_EVENT_SERVICE_URL"},
		"tokens":   {func(c *cis.Config) { c.AuthURL = "" }, "APP_CIS_AUTH_URL"},
		"secret":   {func(c *cis.Config) { c.ClientSecret = "" }, "APP_CIS_CLIENT_SECRET"},
		"version":  {func(c *cis.Config) { c.Version = "v1" }, "APP_CIS_VERSION"},
		"interval": {func(c *cis.Config) { c.Interval = time.Second }, "APP_CIS_INTERVAL"},
	}

	for name, c := range cases {
		config := valid
		c.change(&config)

		err := config.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
