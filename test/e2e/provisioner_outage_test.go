package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
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
	// operationCount is the number of operations that wait while the Provisioner is unavailable.
	operationCount = 30
	// breakerProbeInterval is the minimum time between two probes of the broker's circuit breaker.
	breakerProbeInterval = 2 * time.Second
)

// countedDisconnect returns a fault that breaks every connection and counts the calls. It does not count the requests to the
// change feed, because one of them is always open.
func countedDisconnect(calls *atomic.Int64) harness.Fault {
	return func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && !bytes.Contains(body, []byte("operationChanges")) {
			calls.Add(1)
		}

		harness.Disconnect(w, r)
	}
}

// TestProvisionerOutage makes many operations wait for an unavailable Provisioner. Every operation must name the cause, and the
// broker must send only the probes of its circuit breaker. When the Provisioner is available again, all operations must end
// before their next scheduled attempt.
func TestProvisionerOutage(t *testing.T) {
	t.Parallel()

	var calls atomic.Int64

	e := start(t, harness.SQLite, 100*time.Millisecond)
	repair := e.services.Proxy.Inject(harness.Match{}, countedDisconnect(&calls))

	operations := map[string]string{}
	for i := range operationCount {
		id := fmt.Sprintf("instance-%d", i)
		operations[id] = e.Create(id, harness.PlanAWS)
	}

	// The operation whose attempt is a probe of the circuit breaker names another problem until its next attempt.
	unnamed := maps.Clone(operations)

	e.Until("every operation to name its problem", func() bool {
		maps.DeleteFunc(unnamed, func(_, operation string) bool {
			problem, _ := e.operation(operation)["problem"].(map[string]any)

			return problem["reason"] == "err_system_unavailable"
		})

		return len(unnamed) == 0
	})

	// The circuit breaker is open. From now on the broker sends only probes.
	probing, callsBefore := time.Now(), calls.Load()
	e.Until("a probe of the circuit breaker", func() bool { return calls.Load() > callsBefore })

	last := e.mostDelayed(operations)

	probes := calls.Load() - callsBefore
	if allowed := int64(time.Since(probing)/breakerProbeInterval) + 1; probes > allowed {
		t.Errorf("%d calls to an unavailable Provisioner in %s while %d operations wait, want at most %d",
			probes, time.Since(probing).Round(time.Second), operationCount, allowed)
	}

	got := e.explain(last.operation)
	for _, want := range []string{"the Provisioner is unavailable", "calls in a row have failed since", "provisioner is available"} {
		if !strings.Contains(got, want) {
			t.Errorf("the explanation lacks %q:\n%s", want, got)
		}
	}

	repaired := time.Now()

	repair()

	for id := range operations {
		e.WantSucceeded(id)
	}

	t.Logf("%d calls until all operations named the cause, %d probes in %s; all done %s after the outage, although the last attempt was scheduled for %s after it",
		callsBefore, probes, repaired.Sub(probing).Round(time.Millisecond), time.Since(repaired).Round(time.Millisecond),
		last.nextRun.Sub(repaired).Round(time.Millisecond))

	if progressed := e.progressed(last.operation, repaired); !progressed.Before(last.nextRun) {
		t.Errorf("an operation whose next attempt was scheduled for %s made progress only at %s", last.nextRun, progressed)
	}

	if shoots := e.shoots(); len(shoots) != operationCount {
		t.Errorf("got %d Shoots, want %d", len(shoots), operationCount)
	}
}

func (p platform) operation(id string) map[string]any {
	p.Helper()

	return p.Send(http.MethodGet, "/operations/"+id, nil, http.StatusOK).Body
}

// progressed returns the end of the operation's first timeline entry after the given time whose outcome is not retrying.
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

// delayed is an operation and the time for which its next attempt is scheduled.
type delayed struct {
	operation string
	nextRun   time.Time
}

// mostDelayed waits until the next attempt of one of the operations is far in the future. It returns the operation whose next
// attempt is last.
func (p platform) mostDelayed(operations map[string]string) delayed {
	p.Helper()

	const minDelay = 14 * time.Second

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

		return time.Until(found.nextRun) > minDelay
	})

	return found
}
