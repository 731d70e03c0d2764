package load

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
)

// Watch reads server-sent events until the context ends, and calls changed for each event of type "change". It calls opened each
// time a stream has begun, and reconnects when the server ends the stream. The stream has no timeout.
func (g *Generator) Watch(ctx context.Context, url string, header http.Header, opened func(), changed func() error) error {
	streams := &http.Client{Transport: g.client.Transport}

	for {
		if err := watchOnce(ctx, streams, url, header, opened, changed); err != nil {
			return err
		}
	}
}

func watchOnce(ctx context.Context, client *http.Client, url string, header http.Header, opened func(), changed func() error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("building %s: %w", url, err)
	}

	request.Header = maps.Clone(header)
	request.Header.Set("Accept", "text/event-stream")

	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("watching %s: %w", url, err)
	}

	defer func() { _ = response.Body.Close() }()

	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("watching %s: %s", url, response.Status)
	}

	opened()

	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if lines.Text() != "event: change" {
			continue
		}

		if err := changed(); err != nil {
			return err
		}
	}

	return ctx.Err() //nolint:wrapcheck // the caller has canceled the context
}
