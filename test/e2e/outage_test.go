package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

const (
	// crowd is how many operations wait while the Provisioner is away.
	crowd = 30
	// trialPause is how long the broker waits at least between two calls to a system that is away.
	trialPause = 2 * time.Second
)

// counted counts the calls to a Provisioner that is away, but for those of the feed: each replica has one of these at a time.
func counted(calls *atomic.Int64) trouble {
	return func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && !bytes.Contains(body, []byte("operationChanges")) {
			calls.Add(1)
		}

		down(w, r)
	}
}

// TestOutageOfTheProvisioner has many operations wait for a Provisioner that is away: it is hardly called, everybody is told why, and
// when it is back all operations end, without waiting for their own next try.
func TestOutageOfTheProvisioner(t *testing.T) {
	t.Parallel()

	var calls atomic.Int64

	road := &road{}
	broken := counted(&calls)

	l := start(t, onSQLite, 100*time.Millisecond, func(provisioner string) string {
		target, err := url.Parse(provisioner)
		if err != nil {
			t.Fatal(err)
		}

		road.target = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
		server := httptest.NewServer(road)
		t.Cleanup(server.Close)

		return server.URL + target.Path
	})

	road.broken.Store(&broken)

	operations := map[string]string{}
	for i := range crowd {
		id := fmt.Sprintf("instance-%d", i)
		operations[id] = l.create(id, planAWS)
	}

	l.until("every operation to be told why it waits", func() bool {
		for _, operation := range operations {
			if problem, _ := l.operation(operation)["problem"].(map[string]any); problem["reason"] != "err_system_unavailable" {
				return false
			}
		}

		return true
	})

	// From here on nothing but trials is to be seen.
	began, made := time.Now(), calls.Load()
	l.until("a trial", func() bool { return calls.Load() > made })

	last := l.farthest(operations)

	trials := calls.Load() - made
	if allowed := int64(time.Since(began)/trialPause) + 1; trials > allowed {
		t.Errorf("%d calls to a Provisioner that is away in %s while %d operations wait, want at most %d",
			trials, time.Since(began).Round(time.Second), crowd, allowed)
	}

	told := explain(t, l.platform, last.operation)
	for _, want := range []string{"the Provisioner is unavailable", "calls in a row have failed since", "provisioner answers again"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not in the explanation:\n%s", want, told)
		}
	}

	repaired := time.Now()

	road.broken.Store(nil)

	for id := range operations {
		l.succeeded(id)
	}

	t.Logf("%d calls until all knew, %d trials in %s; all done %s after the Provisioner was back, the last would have tried again after %s",
		made, trials, repaired.Sub(began).Round(time.Millisecond), time.Since(repaired).Round(time.Millisecond),
		last.nextRun.Sub(repaired).Round(time.Millisecond))

	if went := l.wentOn(last.operation, repaired); !went.Before(last.nextRun) {
		t.Errorf("an operation that would have tried again at %s went on at %s", last.nextRun, went)
	}

	if shoots := l.shoots(); len(shoots) != crowd {
		t.Errorf("there are %d Shoots, want %d", len(shoots), crowd)
	}
}

// operation is what the operator API tells of it.
func (p platform) operation(id string) map[string]any {
	p.Helper()

	return p.send(http.MethodGet, "/operations/"+id, nil, http.StatusOK).Body
}

// wentOn is when the operation first came further after that time: when the first attempt ended that is not merely to be made again.
func (p platform) wentOn(operation string, after time.Time) time.Time {
	p.Helper()

	var told operatorapi.Operation

	p.decode(p.ebctl("operation", "get", operation, "-o", "json"), &told)

	first := slices.IndexFunc(told.Timeline, func(entry operatorapi.TimelineEntry) bool {
		return entry.End.After(after) && entry.Outcome != string(process.Retrying)
	})
	if first < 0 {
		p.Fatalf("nothing in the timeline of %s is from after %s: %+v", operation, after, told.Timeline)
	}

	return told.Timeline[first].End
}

// patient is an operation whose next try is far away.
type patient struct {
	operation string
	nextRun   time.Time
}

// farthest waits until an operation would not try again for a while.
func (p platform) farthest(operations map[string]string) patient {
	p.Helper()

	const while = 14 * time.Second

	var found patient

	p.until("an operation that waits for long", func() bool {
		for _, operation := range operations {
			text, _ := p.operation(operation)["nextRun"].(string)

			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				p.Fatalf("the next run of %s is %q", operation, text)
			}

			if at.After(found.nextRun) {
				found = patient{operation: operation, nextRun: at}
			}
		}

		return time.Until(found.nextRun) > while
	})

	return found
}
