package operator_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// publish publishes the events of instances that the test has stored.
func (b *bench) publish() {
	b.Helper()

	if _, err := b.eventLog.Publish(b.Context(), b.clock.Now()); err != nil {
		b.Fatal(err)
	}
}

// eventTexts returns the type and the instance of each event.
func eventTexts(events []operatorapi.CloudEvent) []string {
	texts := []string{}
	for _, event := range events {
		texts = append(texts, strings.TrimPrefix(event.Type, "io.github.environment-broker.")+" "+event.Data.InstanceID)
	}

	return texts
}

func TestListEvents(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := benchOn(t, db)
		b.instance("one", process.Succeeded)
		b.instance("two", process.Failed)
		b.publish()

		for query, want := range map[string][]string{
			"":                                {"instance.created one", "operation.accepted one", "operation.succeeded one", "instance.created two", "operation.accepted two", "operation.failed two"},
			"?instance_id=two":                {"instance.created two", "operation.accepted two", "operation.failed two"},
			"?types=operation.failed":         {"operation.failed two"},
			"?after=4":                        {"operation.accepted two", "operation.failed two"},
			"?account=other":                  {},
			"?account=ga&page_size=1&after=2": {"operation.succeeded one"},
			"?types=instance.created,io.github.environment-broker.operation.failed&instance_id=one": {"instance.created one"},
		} {
			got := list[operatorapi.CloudEventList](b, "/events"+query)
			if diff := cmp.Diff(want, eventTexts(got.Data)); diff != "" || got.Count != len(want) {
				b.Errorf("%s: count %d, -want +got\n%s", query, got.Count, diff)
			}

			if got.Last != 6 {
				b.Errorf("%s: the newest event is %d, want 6", query, got.Last)
			}

			if want := query == "?account=ga&page_size=1&after=2"; got.More != want || !want && got.After != 6 {
				b.Errorf("%s: more %t after %d", query, got.More, got.After)
			}
		}

		for query, want := range map[string]string{
			"?types=other":   `The type "other" is unknown. Use one or more of: operation.accepted, `,
			"?after=x":       "after must be the position of an event",
			"?after=-1":      "after must be the position of an event",
			"?page_size=101": "page_size must be a number from 1 to 100.",
			"?unknown=1":     "unknown",
		} {
			if got := b.want(query, b.do("viewer", http.MethodGet, "/events"+query), http.StatusBadRequest); !strings.Contains(got.Raw, strings.ReplaceAll(want, `"`, `\"`)) {
				b.Errorf("%s: got %s", query, got.Raw)
			}
		}

		b.want("a restored database", b.do("viewer", http.MethodGet, "/events?after=7"), http.StatusGone)
	})
}

// TestListEventsAfterErasure reads all pages of a log whose newest events were erased with the data of an account. The last page says
// that there are no more.
func TestListEventsAfterErasure(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := benchOn(t, db)
		b.instance("kept", process.Succeeded)
		b.instance("erased", process.Succeeded, func(instance *environment.Instance) { instance.GlobalAccountID = "erased" })
		b.publish()

		b.inTx(func(tx storage.Tx) error {
			erased, err := b.eventLog.Erase(b.Context(), tx, "erased")
			if erased != 3 {
				b.Errorf("%d events were erased", erased)
			}

			return err
		})

		for query, want := range map[string]operatorapi.CloudEventList{
			"?page_size=2":         {Count: 2, After: 2, Last: 6, More: true},
			"?page_size=2&after=2": {Count: 1, After: 6, Last: 6},
			"?after=4":             {Count: 0, After: 6, Last: 6},
			"":                     {Count: 3, After: 6, Last: 6},
			"?account=erased":      {Count: 0, After: 6, Last: 6},
		} {
			got := list[operatorapi.CloudEventList](b, "/events"+query)
			got.Data = nil

			if diff := cmp.Diff(want, got); diff != "" {
				b.Errorf("%s: -want +got\n%s", query, diff)
			}
		}

		b.instance("next", process.Pending)
		b.publish()

		if got := list[operatorapi.CloudEventList](b, "/events?after=6"); got.Count != 2 || got.After != 8 || got.More {
			b.Errorf("the next events: got %+v", got)
		}
	})
}

func TestFollowEvents(t *testing.T) {
	b := newBench(t)
	b.instance("one", process.Succeeded)
	b.publish()

	for _, c := range []struct {
		reason, method, accept, last, query string
		status                              int
		first                               string
	}{
		{"the header", http.MethodGet, "text/event-stream", "2", "", http.StatusOK, "id: 2"},
		{"the parameter", http.MethodGet, "application/json;q=0.1, text/event-stream", "", "?after=1", http.StatusOK, "id: 1"},
		{"the header has precedence", http.MethodGet, "text/event-stream", "2", "?after=1", http.StatusOK, "id: 2"},
		{"new events", http.MethodGet, "text/event-stream", "", "", http.StatusOK, "id: 3"},
		{"HEAD is no stream", http.MethodHead, "text/event-stream", "2", "", http.StatusOK, ""},
		{"an invalid position", http.MethodGet, "text/event-stream", "x", "", http.StatusBadRequest, ""},
		{"a position that does not exist", http.MethodGet, "text/event-stream", "99", "", http.StatusGone, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, b.address+"/events"+c.query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}

		request.SetBasicAuth("viewer", "v")
		request.Header.Set("Accept", c.accept)

		if c.last != "" {
			request.Header.Set("Last-Event-ID", c.last)
		}

		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}

		lines := bufio.NewScanner(response.Body)
		for c.first != "" && lines.Scan() && !strings.HasPrefix(lines.Text(), "id: ") {
			continue
		}

		if response.StatusCode != c.status || lines.Text() != c.first {
			t.Errorf("%s: got status %d and %q", c.reason, response.StatusCode, lines.Text())
		}

		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}

	if got := b.account("ga"); got.Events != 3 {
		t.Errorf("the account has %d events", got.Events)
	}
}
