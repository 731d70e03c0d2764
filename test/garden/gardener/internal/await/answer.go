package await

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// askFor bounds a single question.
const askFor = 5 * time.Second

// Answer returns a probe that succeeds when a GET of url is answered with status 200.
func Answer(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, askFor)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("ask %s: %w", url, err)
		}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("ask whether a server is ready: %w", err)
		}
		if err := response.Body.Close(); err != nil {
			return fmt.Errorf("ask %s: %w", url, err)
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}
