//go:build garden

package installer_test

import (
	"net/http"
	"sync"
)

// counter is a transport that counts write requests. It can respond instead of the API server.
type counter struct {
	mu      sync.Mutex
	writes  int
	meddler func(*http.Request) *http.Response
}

func (c *counter) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		c.mu.Lock()
		if request.Method != http.MethodGet && !request.URL.Query().Has("dryRun") {
			c.writes++
		}
		meddler := c.meddler
		c.mu.Unlock()
		if meddler != nil {
			if response := meddler(request); response != nil {
				return response, nil
			}
		}
		return next.RoundTrip(request)
	})
}

func (c *counter) take() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	writes := c.writes
	c.writes = 0
	return writes
}

func (c *counter) meddle(with func(*http.Request) *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meddler = with
}
