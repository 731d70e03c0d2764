package restclient_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// FuzzResponse sends a request for a token and a call to a system with arbitrary responses. Every error is classified, and does not
// quote a response.
func FuzzResponse(f *testing.F) {
	const valid = `{"access_token": "t", "expires_in": 60}`

	f.Add(valid, 200, `[{"key": "a", "value": "b"}]`)
	f.Add(valid, 200, `{"entries": [{"key": "a"}, {"key": "b"}], "count": 2}`)
	f.Add(valid, 429, `{"message": "later"}`)
	f.Add(`{"access_token": 7}`, 200, ``)
	f.Add(`{"access_token": "a\nb", "expires_in": -1}`, 401, `null`)
	f.Add(``, 200, `{}`)

	f.Fuzz(func(t *testing.T, token string, status int, body string) {
		if status < 200 || status > 599 {
			t.Skip("no status of a final response")
		}

		client := restclient.New(restclient.Options{
			Title: "It", Component: "it", Settings: "APP_IT", Timeout: time.Minute,
			Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
				text, code := body, status
				if request.URL.Path == "/token" {
					text, code = token, http.StatusOK
				}

				return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: request}, nil
			}),
			Grant: &restclient.Grant{URL: "http://it/token", Type: "client_credentials", ClientID: "id", ClientSecret: "secret"},
		})

		var (
			entries []struct{ Key, Value string }
			list    = &restclient.List{Field: "entries", Add: func(decode func(any) error) error { return decode(&struct{ Key, Value string }{}) }}
		)

		for _, request := range []restclient.Request{{Into: &entries}, {List: list}} {
			request.Method, request.URL, request.Action = http.MethodGet, "http://it/entries", "work"

			err := client.Do(t.Context(), request)
			if err == nil {
				continue
			}

			if _, classified := errors.AsType[*failure.Error](err); !classified {
				t.Errorf("the error has no kind: %v", err)
			}

			if len(body) > 40 && strings.Contains(err.Error(), body) {
				t.Errorf("the error quotes the response: %v", err)
			}
		}
	})
}
