package restclient_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

// TestTimeoutAfterARejectedToken checks that a call whose token is rejected ends in time, although another call is already waiting for a
// token endpoint that does not respond.
func TestTimeoutAfterARejectedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout, slow, later = time.Minute, 30 * time.Second, 20 * time.Second

		var requested atomic.Int32

		respond := func(status int, body string) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}, nil
		}

		client := restclient.New(restclient.Options{
			Title: "It", Component: "it", Settings: "APP_IT", Timeout: timeout,
			Grant: &restclient.Grant{URL: "http://it/token", Type: "client_credentials", ClientID: "id", ClientSecret: "secret"},
			Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
				switch {
				case request.URL.Path == "/token" && requested.Add(1) == 1:
					return respond(http.StatusOK, `{"access_token": "t"}`)
				case request.URL.Path == "/token":
					<-request.Context().Done()

					return nil, request.Context().Err()
				case request.URL.Path == "/slow":
					time.Sleep(slow)
				}

				return respond(http.StatusUnauthorized, "")
			}),
		})

		call := func(path string) (time.Duration, error) {
			began := time.Now()
			err := client.Do(t.Context(), restclient.Request{Method: http.MethodGet, URL: "http://it" + path, Action: "work"})

			return time.Since(began), err
		}

		go func() {
			time.Sleep(later)

			_, _ = call("/fast") // waits for the token endpoint when the other call gets its response
		}()

		if took, err := call("/slow"); took > timeout || !failure.Is(err, failure.Transient) {
			t.Errorf("the call took %s and returned %v", took, err)
		}
	})
}

// TestLifetimes checks how long a token is used.
func TestLifetimes(t *testing.T) {
	cases := map[string]struct {
		reason    string
		expiresIn string
		want      time.Duration
	}{
		"Usual":   {"a token is replaced 30 seconds before it expires", "3600", time.Hour - 30*time.Second},
		"Missing": {"five minutes are assumed", "0", 5*time.Minute - 30*time.Second},
		"Long":    {"a token is used for a day at most", "604800", 24*time.Hour - 30*time.Second},
		"Endless": {"the seconds exceed a duration", "9223372036854775807", 24*time.Hour - 30*time.Second},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				issued := 0
				client := restclient.New(restclient.Options{
					Title: "It", Component: "it", Settings: "APP_IT", Timeout: time.Minute,
					Grant: &restclient.Grant{URL: "http://it/token", Type: "client_credentials", ClientID: "id", ClientSecret: "secret"},
					Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
						body := "{}"
						if request.URL.Path == "/token" {
							issued++
							body = `{"access_token": "t", "expires_in": ` + c.expiresIn + `}`
						}

						return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}, nil
					}),
				})

				call := func(wait time.Duration, want int) {
					time.Sleep(wait)

					if err := client.Do(t.Context(), restclient.Request{Method: http.MethodGet, URL: "http://it/", Action: "work"}); err != nil {
						t.Fatal(err)
					}

					if issued != want {
						t.Errorf("%s: %d tokens were issued, want %d", c.reason, issued, want)
					}
				}

				call(0, 1)
				call(c.want-time.Millisecond, 1)
				call(2*time.Millisecond, 2)
			})
		})
	}
}
