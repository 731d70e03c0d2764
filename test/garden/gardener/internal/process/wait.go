package process

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"time"
)

const (
	// interval is the pause between two probes.
	interval = 50 * time.Millisecond
	// answerTimeout limits each request of the probe that Answers returns.
	answerTimeout = 5 * time.Second
	// lockTimeout is how long Lock waits for another garden that is stopping.
	lockTimeout = 15 * time.Second
)

// Until calls probe repeatedly until it returns nil or the context ends. The error contains the last error of probe. condition
// completes the phrase "waiting until …" in the error.
func Until(ctx context.Context, condition string, probe func(context.Context) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w; last error: %w", condition, context.Cause(ctx), err)
		}
	}
}

// Answers returns a probe that succeeds if a GET request to the URL returns status 200.
func Answers(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("requesting %s: %w", url, err)
		}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("probing a server: %w", err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s returns %s", url, response.Status)
		}
		return nil
	}
}

// Lock locks a file until the file is closed or the process exits. If another garden holds the lock, it may be stopping, so Lock
// waits up to lockTimeout before it returns an error.
func Lock(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if err := Until(ctx, path+" is unlocked", func(context.Context) error {
		return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("another garden uses this folder: %w", err)
	}
	return file, nil
}
