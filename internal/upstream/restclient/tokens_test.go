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
