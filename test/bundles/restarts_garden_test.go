//go:build garden

package bundles

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

// TestAPIServerRestarts kills the API server of the hub or of the target with SIGKILL while it processes a call of the bundler,
// and restarts it. At other points, such as content downloads and changes of the store, the test kills the hub's API server. The
// bundler itself must not end. The test runs before the parallel tests, because all of them share the API servers. `make test`
// tests one point for each scenario and API server.
func TestAPIServerRestarts(t *testing.T) {
	var chosen []scenario

	random := rand.New(rand.NewPCG(harness.Seed(t), 0))

	for _, scenario := range scenarios() {
		name := scenario.name

		switch name {
		case "install", "uninstall":
		case "pivot":
			three := scenario
			three.name, three.replicas = name+" with three replicas", 3
			chosen = append(chosen, three)
		default:
			continue
		}

		chosen = append(chosen, scenario)
	}

	for _, scenario := range chosen {
		t.Run(scenario.name, func(t *testing.T) {
			onTarget, others := split(scenario.run(t, "", nil))

			for _, row := range []struct {
				name   string
				server *cluster
				points []string
			}{{"hub", hub, others}, {"target", target, onTarget}} {
				t.Run(row.name, func(t *testing.T) {
					atPoints(t, row.points, 1, random, false, func(t *testing.T, point string) bool {
						return scenario.run(t, point, func(f *fixture) func() bool { return func() bool { return row.server.crash(f) } }) == nil
					})
				})
			}
		})
	}
}

// split separates the points at calls to the target from all others.
func split(points []string) (onTarget, others []string) {
	for _, point := range points {
		if strings.HasPrefix(point, "target ") {
			onTarget = append(onTarget, point)
		} else {
			others = append(others, point)
		}
	}

	return onTarget, others
}

// crash kills the API server with SIGKILL, and restarts it in the background. It returns false, so that the call at whose point it
// is called gets no response.
func (c *cluster) crash(f *fixture) (alive bool) {
	text, err := os.ReadFile(c.pidFile)
	if err != nil {
		f.Error(err)

		return false
	}

	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}

	if err != nil {
		f.Errorf("ending the API server: %v", err)

		return false
	}

	// Wait until the process has ended, because its address is in use until then.
	for ; syscall.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
	}

	started := make(chan error, 1)
	go func() { started <- c.Start() }()
	f.Cleanup(func() {
		// If there are several replicas, a leader that cannot renew its lease ends, so restarts are allowed.
		if starts := f.replicas[0].startsSoFar(); starts != 1 && len(f.replicas) == 1 {
			f.Errorf("the bundler was started %d times", starts)
		}

		if err := <-started; err != nil {
			output, _ := os.ReadFile(c.log)
			f.Errorf("starting the API server again: %v\n%s", err, harness.LastLines(string(output)))
		}
	})

	return false
}

// patient repeats the calls of a test while an API server restarts. It reads the whole body of a response, because the API server
// may end while it sends the body. No test watches objects with it.
type patient struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()

	for deadline := time.Now().Add(harness.Patience); ; {
		attempt := request.Clone(request.Context())

		if request.GetBody != nil {
			var err error
			if attempt.Body, err = request.GetBody(); err != nil {
				return nil, err
			}
		}

		response, err := p.send(attempt)
		away := err != nil || response.StatusCode == http.StatusServiceUnavailable

		if !away || time.Now().After(deadline) || request.Body != nil && request.GetBody == nil {
			return response, err
		}

		select {
		case <-request.Context().Done():
			return nil, request.Context().Err()
		case <-ticker.C:
		}
	}
}

// send returns the response with its whole body in memory.
func (p patient) send(request *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()

	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}

	response.Body = io.NopCloser(bytes.NewReader(body))

	return response, nil
}
