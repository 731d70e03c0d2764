package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// crowd is the number of operations that wait while the Provisioner is unavailable.
	crowd = 30
	// trialPause is the minimum time between two probes of the broker's circuit breaker.
	trialPause = 2 * time.Second
)

// countedDisconnect breaks every connection and counts the calls, except those of the change feed: each replica has one of these at a time.
func countedDisconnect(calls *atomic.Int64) harness.Fault {
	return func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && !bytes.Contains(body, []byte("operationChanges")) {
			calls.Add(1)
		}

		harness.Disconnect(w, r)
	}
}

// TestProvisionerOutage makes many operations wait for an unavailable Provisioner. The broker hardly calls it, and every operation names
// the cause. When it is available again, all operations end without waiting for their next attempt.
func TestProvisionerOutage(t *testing.T) {
	t.Parallel()

	var calls atomic.Int64

	l := start(t, harness.SQLite, 100*time.Millisecond)
	repair := l.services.Proxy.Inject(harness.Match{}, countedDisconnect(&calls))

	operations := map[string]string{}
	for i := range crowd {
		id := fmt.Sprintf("instance-%d", i)
		operations[id] = l.Create(id, harness.PlanAWS)
	}

	l.Until("every operation to name its problem", func() bool {
		for _, operation := range operations {
			if problem, _ := l.operation(operation)["problem"].(map[string]any); problem["reason"] != "err_system_unavailable" {
				return false
			}
		}

		return true
	})

	// From here on, the broker sends only probes.
	began, made := time.Now(), calls.Load()
	l.Until("a probe of the circuit breaker", func() bool { return calls.Load() > made })

	last := l.farthest(operations)

	trials := calls.Load() - made
	if allowed := int64(time.Since(began)/trialPause) + 1; trials > allowed {
		t.Errorf("%d calls to an unavailable Provisioner in %s while %d operations wait, want at most %d",
			trials, time.Since(began).Round(time.Second), crowd, allowed)
	}

	got := l.explain(last.operation)
	for _, want := range []string{"the Provisioner is unavailable", "calls in a row have failed since", "provisioner is available"} {
		if !strings.Contains(got, want) {
			t.Errorf("the explanation lacks %q:\n%s", want, got)
		}
	}

	repaired := time.Now()

	repair()

	for id := range operations {
		l.WantSucceeded(id)
	}

	t.Logf("%d calls until all operations named the cause, %d probes in %s; all done %s after the outage, although the last next attempt was due after %s",
		made, trials, repaired.Sub(began).Round(time.Millisecond), time.Since(repaired).Round(time.Millisecond),
		last.nextRun.Sub(repaired).Round(time.Millisecond))

	if went := l.progressed(last.operation, repaired); !went.Before(last.nextRun) {
		t.Errorf("an operation whose next attempt was at %s progressed at %s", last.nextRun, went)
	}

	if shoots := l.shoots(); len(shoots) != crowd {
		t.Errorf("got %d Shoots, want %d", len(shoots), crowd)
	}
}

// operation returns an operation from the operator API.
func (p platform) operation(id string) map[string]any {
	p.Helper()

	return p.Send(http.MethodGet, "/operations/"+id, nil, http.StatusOK).Body
}

// progressed returns the time of the operation's first progress after the given time: the end of the first attempt that is not retried.
func (p platform) progressed(operation string, after time.Time) time.Time {
	p.Helper()

	var got operatorapi.Operation

	p.decode(p.ebctl("operation", "get", operation, "-o", "json"), &got)

	first := slices.IndexFunc(got.Timeline, func(entry operatorapi.TimelineEntry) bool {
		return entry.End.After(after) && entry.Outcome != string(process.Retrying)
	})
	if first < 0 {
		p.Fatalf("the timeline of %s has no progress after %s: %+v", operation, after, got.Timeline)
	}

	return got.Timeline[first].End
}

// delayed is an operation with a distant next attempt.
type delayed struct {
	operation string
	nextRun   time.Time
}

// farthest waits until an operation has a distant next attempt, and returns the one with the most distant.
func (p platform) farthest(operations map[string]string) delayed {
	p.Helper()

	const while = 14 * time.Second

	var found delayed

	p.Until("an operation with a distant next attempt", func() bool {
		for _, operation := range operations {
			text, _ := p.operation(operation)["nextRun"].(string)

			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				p.Fatalf("the next run of %s is %q", operation, text)
			}

			if at.After(found.nextRun) {
				found = delayed{operation: operation, nextRun: at}
			}
		}

		return time.Until(found.nextRun) > while
	})

	return found
}
