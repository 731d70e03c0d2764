package console_test

import (
	"bufio"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// follow connects to a stream of live updates, and returns a channel with its lines.
func (f *fixture) follow(address string) <-chan string {
	f.Helper()

	request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		f.Fatal(err)
	}

	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		f.Fatal(err)
	}

	if response.Header.Get("Content-Type") != "text/event-stream" {
		f.Fatalf("%d %v", response.StatusCode, response.Header)
	}

	lines := make(chan string, 100)

	go func() {
		defer close(lines)
		defer response.Body.Close()

		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()

	return lines
}

// look lets a stream check for changes once. It reports the problem unless the stream sends a change or, if want is false, none.
func (f *fixture) look(lines <-chan string, want bool, problem string) {
	f.Helper()

	f.waitForStream()
	f.liveClock.Step(time.Second)
	f.waitForStream() // until the check has ended

	limit := 100 * time.Millisecond // what the stream has written has arrived
	if want {
		limit = time.Minute // the machine may be busy
	}

	if changed(lines, limit) != want {
		f.Error(problem)
	}
}

// changed reports whether the stream sends a change within the limit.
func changed(lines <-chan string, limit time.Duration) bool {
	for ended := time.After(limit); ; {
		select {
		case line, open := <-lines:
			if !open || line == "event: change" {
				return open
			}
		case <-ended:
			return false
		}
	}
}

// waitForStream waits until a stream waits for its next check.
func (f *fixture) waitForStream() {
	f.Helper()

	for !f.liveClock.HasWaiters() {
		select {
		case <-f.Context().Done():
			f.Fatal("the test has ended")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestLiveOrchestration follows the page of an orchestration whose waiting targets are canceled, which causes no event.
func TestLiveOrchestration(t *testing.T) {
	f := newFixture(t)
	f.instance("a", process.Succeeded)

	id, err := f.orders.Create(t.Context(), environment.KindUpgradeCluster, fleet.Parameters{Targets: fleet.Targets{Include: []fleet.Target{{Target: "all"}}}})
	if err != nil {
		t.Fatal(err)
	}

	lines := f.follow(f.serve() + "/console/live?orchestration=" + id)

	f.look(lines, false, "a change is reported although nothing has changed")

	if err := f.orchestrations.SetState(t.Context(), f.db.Writer(), id, environment.OrchestrationPending, "1 canceled", f.clock.Now()); err != nil {
		t.Fatal(err)
	}

	f.look(lines, true, "the change is not reported")

	f.position.Add(1)

	f.look(lines, true, "an event is not reported")
}

// TestLive follows the pages of an operation and an instance, and a list.
func TestLive(t *testing.T) {
	for query, change := range map[string]func(f *fixture){
		"?operation=op-a": func(f *fixture) { f.cancel("op-a") },
		"?instance=a":     func(f *fixture) { f.cancel("op-a") },
		"":                func(f *fixture) { f.position.Add(1) },
	} {
		t.Run(strings.Trim(query, "?"), func(t *testing.T) {
			f := newFixture(t)
			f.instance("a", process.InProgress)

			lines := f.follow(f.serve() + "/console/live" + query)

			f.look(lines, false, "a change is reported although nothing has changed")

			change(f)

			f.look(lines, true, "the change is not reported")

			f.look(lines, false, "the change is reported twice")
		})
	}
}

func (f *fixture) cancel(id string) {
	f.Helper()

	if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
		_, err := f.operations.CancelOne(f.Context(), tx, id, "test", f.clock.Now().Add(time.Second))

		return err
	}); err != nil {
		f.Fatal(err)
	}
}

// TestLiveOverview follows the overview. A refresh directly after an event shows the earlier numbers, which the replica has kept. The stream
// therefore reports another change when the replica reads the numbers again.
func TestLiveOverview(t *testing.T) {
	f := newFixture(t)
	f.instance("a", process.Succeeded)

	const one, two = `<span class="value">1</span> <span class="label">instances`, `<span class="value">2</span> <span class="label">instances`

	server := f.serve()
	body := f.page("/console/", http.StatusOK)

	stream := regexp.MustCompile(`sse-connect="([^"]+)"`).FindStringSubmatch(body)
	if stream == nil || !strings.Contains(body, one) {
		t.Fatalf("the page has no stream, or not one instance: %s", body)
	}

	lines := f.follow(server + html.UnescapeString(stream[1]))

	f.look(lines, false, "a change is reported although nothing has changed")
	f.instance("b", process.Succeeded)
	f.position.Add(1)
	f.look(lines, true, "the event is not reported")

	if body := f.page("/console/", http.StatusOK); !strings.Contains(body, one) {
		t.Errorf("the numbers are not kept: %s", body)
	}

	f.look(lines, false, "a change is reported before the numbers are read again")
	f.look(lines, false, "a change is reported before the numbers are read again")
	f.look(lines, true, "no change is reported when the numbers are read again")
	f.clock.SetTime(f.liveClock.Now())

	if body := f.page("/console/", http.StatusOK); !strings.Contains(body, two) {
		t.Errorf("the numbers are not read again: %s", body)
	}
}

// TestChangeBeforeTheStream makes a change after a page was rendered and before its stream is connected. The stream reports it at once.
func TestChangeBeforeTheStream(t *testing.T) {
	for page, change := range map[string]func(f *fixture){
		"/console/operations/op-a": func(f *fixture) { f.cancel("op-a") },
		"/console/instances/a":     func(f *fixture) { f.cancel("op-a") },
		"/console/operations":      func(f *fixture) { f.position.Add(1) },
	} {
		t.Run(strings.ReplaceAll(page, "/", " "), func(t *testing.T) {
			f := newFixture(t)
			f.instance("a", process.InProgress)

			server := f.serve()
			body := f.page(page, http.StatusOK)

			stream := regexp.MustCompile(`sse-connect="([^"]+)"`).FindStringSubmatch(body)
			if stream == nil {
				t.Fatalf("the page has no stream: %s", body)
			}

			change(f)

			first := make(chan string, 1)
			lines := f.follow(server + html.UnescapeString(stream[1]))

			go func() {
				for line := range lines {
					if strings.HasPrefix(line, "event:") {
						first <- line

						return
					}
				}
			}()

			select {
			case <-first:
			case <-time.After(time.Minute):
				t.Error("the change is not reported")
			}
		})
	}
}

// TestSharedLists refreshes lists without and with an event between two requests. Only a reload by the user reads the list again without an event.
func TestSharedLists(t *testing.T) {
	f := newFixture(t)
	f.instance("a", process.Succeeded)

	refresh := func(path string) string {
		t.Helper()

		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		request.Header.Set("X-Console-Live", "1")

		request = request.WithContext(auth.NewContext(request.Context(), auth.Identity{Name: "ada", Roles: []auth.Role{auth.RoleViewer}}))
		response := httptest.NewRecorder()
		f.handler.ServeHTTP(response, request)

		return response.Body.String()
	}

	for path, id := range map[string]string{"/console/instances": "b", "/console/operations": "c"} {
		refresh(path)
		f.instance(id, process.Succeeded)

		row := "/console/instances/" + id

		if strings.Contains(refresh(path), row) {
			t.Errorf("%s is read again without an event", path)
		}

		if strings.Contains(refresh(path+"?sort=none"), row) || strings.Contains(refresh(path+"?plan=none"), row) {
			t.Errorf("%s: another query gets the same list", path)
		}

		if !strings.Contains(f.page(path, http.StatusOK), row) {
			t.Errorf("%s: a reload does not read the list", path)
		}

		f.position.Add(1)

		if !strings.Contains(refresh(path), row) {
			t.Errorf("%s is not read again after an event", path)
		}
	}
}
