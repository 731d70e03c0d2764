package restclient_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

func TestResponses(t *testing.T) {
	cases := map[string]struct {
		reason     string
		status     int
		body       string
		retryAfter string
		want       failure.Kind
		wantAfter  time.Duration
	}{
		"OK":        {"the response is decoded", 200, `{"id": 7}`, "", "", time.Second},
		"Created":   {"every 2xx is a success", 201, `{"id": 7}`, "", "", time.Second},
		"Garbled":   {"a proxy may answer with HTML", 200, `<html>hidden</html>`, "", failure.Transient, time.Second},
		"Redirect":  {"a redirect would take credentials elsewhere", 302, ``, "", failure.Permanent, time.Second},
		"Invalid":   {"the same request fails again", 400, `hidden`, "", failure.Permanent, time.Second},
		"Denied":    {"an operator can correct credentials", 401, `hidden`, "", failure.Transient, time.Second},
		"Forbidden": {"an operator can correct rights", 403, `hidden`, "", failure.Transient, time.Second},
		"NotFound":  {"the object does not exist", 404, ``, "", failure.NotFound, time.Second},
		"Missing":   {"the object does not exist", 404, `{"error": "hidden"}`, "", failure.NotFound, time.Second},
		"Page":      {"a proxy without a backend may answer", 404, `<html>hidden</html>`, "", failure.Transient, time.Second},
		"Text":      {"a proxy without a backend may answer", 404, `default backend - 404`, "", failure.Transient, time.Second},
		"Timeout":   {"408 can pass", 408, ``, "", failure.Transient, time.Second},
		"Conflict":  {"the object exists", 409, ``, "", failure.Conflict, time.Second},
		"TooMany":   {"the system asks for a pause", 429, ``, "42", failure.Transient, 42 * time.Second},
		"Longest":   {"a pause is bounded", 503, ``, "86400", failure.Transient, 5 * time.Minute},
		"Past":      {"the date has passed", 503, ``, "Wed, 21 Oct 2015 07:28:00 GMT", failure.Transient, time.Second},
		"Date":      {"the pause can end at a date", 503, ``, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), failure.Transient, 5 * time.Minute},
		"Large":     {"a response is bounded", 200, `"` + strings.Repeat("x", 4<<20) + `"`, "", failure.Transient, time.Second},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")

				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}

				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			t.Cleanup(server.Close)

			client := restclient.New(restclient.Options{
				Title: "It", Component: "it", Settings: "APP_IT", Transport: http.DefaultTransport, Timeout: time.Minute,
			})

			var got struct{ ID int }

			err := client.Do(t.Context(), restclient.Request{Method: http.MethodGet, URL: server.URL, Action: "work", Into: &got})

			switch {
			case c.want == "" && (err != nil || got.ID != 7):
				t.Errorf("%s: got %d, %v", c.reason, got.ID, err)
			case c.want != "" && !failure.Is(err, c.want):
				t.Errorf("%s: got %v, want the kind %s", c.reason, err, c.want)
			case err != nil && (strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "127.0.0.1")):
				t.Errorf("the error quotes the response or the address: %v", err)
			}

			if after := restclient.RetryAfter(err, time.Second); after != c.wantAfter {
				t.Errorf("%s: retried after %s, want %s", c.reason, after, c.wantAfter)
			}
		})
	}
}

// TestLists checks which responses with a long list are accepted, and which elements arrive.
func TestLists(t *testing.T) {
	element := `{"id": 7, "more": "` + strings.Repeat("x", 1<<20) + `"}`

	cases := map[string]struct {
		reason string
		body   string
		want   int
		text   string
	}{
		"Long":    {"a list can be longer than another response", `{"a": [{}], "ids": [` + strings.Repeat(element+",", 8) + element + `], "b": null}`, 9, ""},
		"Empty":   {"there may be no elements", `{"ids": []}`, 0, ""},
		"Null":    {"null is an empty list", `{"ids": null}`, 0, ""},
		"Missing": {"a system may omit an empty list", `{}`, 0, ""},
		"Endless": {"a response is bounded", `{"ids": [` + strings.Repeat(element+",", 70), 0, "It returned more than 64 MiB"},
		"Cut":     {"the rest may be lost", `{"ids": [` + element, 0, "It could not work: it returned a response that is not the expected JSON"},
		"Page":    {"a proxy may answer", `<html>`, 0, "It could not work: it returned a response that is not the expected JSON"},
		"Text":    {"a list has another form", `{"ids": "7"}`, 0, "It could not work: it returned a response that is not the expected JSON"},
		"Mixed":   {"an element has another form", `{"ids": [7]}`, 0, "It could not work: it returned a response that is not the expected JSON"},
		"List":    {"the response has another form", `[7]`, 0, "It could not work: it returned a response that is not the expected JSON"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.body)) }))
			t.Cleanup(server.Close)

			client := restclient.New(restclient.Options{
				Title: "It", Component: "it", Settings: "APP_IT", Transport: http.DefaultTransport, Timeout: time.Minute,
			})
			got := 0

			err := client.Do(t.Context(), restclient.Request{Method: http.MethodGet, URL: server.URL, Action: "work", List: &restclient.List{
				Field: "ids", Add: func(decode func(any) error) error {
					var element struct{ ID int }

					err := decode(&element)
					got += element.ID / 7

					return err
				},
			}})

			switch {
			case c.text == "" && (err != nil || got != c.want):
				t.Errorf("%s: got %d elements, %v", c.reason, got, err)
			case c.text != "" && (!failure.Is(err, failure.Transient) || failure.Of(err).Text != c.text):
				t.Errorf("%s: got %v", c.reason, err)
			}
		})
	}
}

// TestIgnoredResponses checks which responses prove the success of a call whose result does not matter.
func TestIgnoredResponses(t *testing.T) {
	cases := map[string]struct {
		reason string
		status int
		body   string
		want   failure.Kind
	}{
		"None":   {"removals have no content", 204, "", ""},
		"Empty":  {"a system may return nothing", 200, "\n", ""},
		"Object": {"a system may return what it has changed", 200, `{"id": 7}`, ""},
		"List":   {"the form does not matter", 201, `["removed"]`, ""},
		"Page":   {"a proxy that answers has not passed the request on", 200, "<html>hidden</html>", failure.Transient},
		"Text":   {"a text may be that of a proxy", 202, "hidden", failure.Transient},
		"Cut":    {"the rest may be lost", 200, `{"id": `, failure.Transient},
		"404":    {"a proxy without a backend proves nothing about the object", 404, "default backend - 404", failure.Transient},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			t.Cleanup(server.Close)

			client := restclient.New(restclient.Options{
				Title: "It", Component: "it", Settings: "APP_IT", Transport: http.DefaultTransport, Timeout: time.Minute,
			})

			err := client.Do(t.Context(), restclient.Request{Method: http.MethodDelete, URL: server.URL, Action: "work"})
			if c.want == "" && err != nil || c.want != "" && !failure.Is(err, c.want) {
				t.Errorf("%s: got %v", c.reason, err)
			}

			if err != nil && failure.Of(err).Text != "It could not work: it returned a response that is not the expected JSON" {
				t.Errorf("shows %v", err)
			}
		})
	}
}

// TestNotExecuted checks which errors prove that the system has not executed a request.
func TestNotExecuted(t *testing.T) {
	const token = `{"access_token": "t"}`

	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}

	cases := map[string]struct {
		reason string
		token  string
		work   http.HandlerFunc
		want   bool
	}{
		"Rejected":    {"the system has answered", token, status(http.StatusBadRequest), true},
		"Failed":      {"the system has answered", token, status(http.StatusServiceUnavailable), true},
		"Redirected":  {"redirects are not followed", token, status(http.StatusFound), true},
		"Page":        {"a proxy without a backend has not sent the request", token, http.NotFound, true},
		"Denied":      {"the second token was rejected as well", token, status(http.StatusUnauthorized), true},
		"Token":       {"the request waits for a token", `{}`, nil, true},
		"Gateway":     {"the gateway may have sent the request", token, status(http.StatusGatewayTimeout), false},
		"BadGateway":  {"the response may have been lost", token, status(http.StatusBadGateway), false},
		"Garbled":     {"the system may have executed it", token, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, false},
		"Interrupted": {"the system may have executed it", token, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
	}

	call := func(t *testing.T, address string, transport http.RoundTripper) error {
		t.Helper()

		client := restclient.New(restclient.Options{
			Title: "It", Component: "it", Settings: "APP_IT", Transport: transport, Timeout: time.Minute,
			Grant: &restclient.Grant{URL: address + "/token", Type: "client_credentials", ClientID: "id", ClientSecret: "secret"},
		})

		var into map[string]any

		return client.Do(t.Context(), restclient.Request{Method: http.MethodPost, URL: address + "/work", Action: "work", Into: &into})
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.token)) })
			mux.HandleFunc("/work", func(w http.ResponseWriter, r *http.Request) { c.work(w, r) })
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)

			err := call(t, server.URL, http.DefaultTransport)
			if err == nil || restclient.NotExecuted(err) != c.want {
				t.Errorf("%s: %v counts as not executed: %t", c.reason, err, !c.want)
			}

			if kind := failure.KindOf(err); kind == failure.Internal {
				t.Errorf("the error has lost its kind: %v", err)
			}
		})
	}

	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()

	if err := call(t, server.URL, http.DefaultTransport); !restclient.NotExecuted(err) {
		t.Errorf("without a connection: %v counts as executed", err)
	}

	rejecting := roundTripper(func(request *http.Request) (*http.Response, error) {
		return nil, failure.New(failure.Transient, "%s is unavailable", request.Host)
	})
	if err := call(t, server.URL, rejecting); !restclient.NotExecuted(err) {
		t.Errorf("an open circuit breaker: %v counts as executed", err)
	}
}
