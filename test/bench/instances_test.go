package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

// measureFinished measures a broker with many ready instances: its start time, its memory and its lists.
func measureFinished(s *scope) {
	const (
		count      = 100_000
		middlePage = count / pageSize / 2
	)

	e, _ := s.fill(count, true)

	for _, statement := range []string{
		// All copies have the same name, plan and region. Searches and sorting need different ones.
		`UPDATE instances SET name = left(md5(id), 12), plan_name = 'plan-' || abs(hashtext(id)) % 5, region = 'region-' || abs(hashtext(id)) % 20`,
		`VACUUM ANALYZE instances`,
	} {
		_, err := e.db.ExecContext(s.Context(), statement)
		s.check(err)
	}

	s.rounds(func(s *scope) {
		broker := s.startBroker(e)
		_, peak := broker.memory()

		generator := load.New(1)
		defer generator.Close()

		first := fmt.Sprintf("%s/runtimes?page_size=%d", broker.url, pageSize)

		// Follow the cursors to the middle page.
		var list operatorapi.RuntimeList

		s.check(json.Unmarshal(s.fetch(generator, gets(fmt.Sprintf("%s&page=%d", first, middlePage))(0)).Body, &list))

		if len(list.Data) != pageSize || list.Cursor == "" {
			s.Fatalf("page %d has %d instances and the cursor %q", middlePage, len(list.Data), list.Cursor)
		}

		name := "start to ready with 100,000 finished operations"
		s.add(report.Figure{Name: name, Unit: "ms", AtMost: 150}, milliseconds(broker.startTook))
		s.add(report.Figure{Name: name + ": resident memory when ready, at its peak", Unit: "MiB", AtMost: 70}, peak/mebibyte)

		name = "list 100 of 100,000 instances, "
		s.add(report.Figure{Name: name + "first page: p50", Unit: "ms", AtMost: 10}, s.latency(generator, first))
		s.add(report.Figure{Name: name + "a page in the middle: p50", Unit: "ms", AtMost: 10},
			s.latency(generator, first+"&cursor="+list.Cursor))

		s.measureConsole(generator, broker, list)
	})
}

// measureConsole measures the console's page of instances: in each sort order, deep in the list, and with searches. middle is a
// page from the middle of the operator API's list.
func (s *scope) measureConsole(generator *load.Generator, broker *program, middle operatorapi.RuntimeList) {
	header := s.login(broker.url)
	header.Del("X-Console-Live") // with this header, requests share results

	found := middle.Data[0]
	pages := []struct{ name, query string }{
		{"first page", ""},
		{"a page in the middle", "cursor=" + middle.Cursor},
		{"search for a runtime", "search=" + found.RuntimeID},
		{"search for a letter", "search=" + url.QueryEscape(found.Name[:1])},
		{"search for the name of a middle page", "search=" + url.QueryEscape(found.Name)},
		{"search for nothing", "search=nothing"},
		{"search for nothing, anywhere", "search=nothing&anywhere=true"},
	}

	for _, sort := range []string{"oldest", "name", "-name", "plan", "-plan", "region", "-region", "account", "-account"} {
		pages = append(pages, struct{ name, query string }{"sort=" + sort, "sort=" + sort})
	}

	for _, page := range pages {
		request := load.Request{Method: http.MethodGet, URL: broker.url + "/console/instances?" + page.query, Header: header, Want: http.StatusOK}
		s.add(report.Figure{Name: "console, 100,000 instances, " + page.name + ": p50", Unit: "ms", AtMost: 100}, s.medianOf(generator, request))
	}
}

// latency fetches url repeatedly and returns the median latency in milliseconds.
func (s *scope) latency(generator *load.Generator, url string) float64 {
	return s.medianOf(generator, gets(url)(0))
}

// medianOf sends the same request repeatedly and returns the median latency in milliseconds.
func (s *scope) medianOf(generator *load.Generator, request load.Request) float64 {
	const times = 200

	var took []time.Duration

	for end := time.Now().Add(period); len(took) == 0 || len(took) < times && time.Now().Before(end); {
		took = append(took, s.fetch(generator, request).Took)
	}

	return milliseconds(report.Median(took))
}

// measureIdle measures the memory of an idle broker.
func measureIdle(s *scope) {
	const pause = 10 * time.Second

	e := s.start(simulated.Behaviour{})
	time.Sleep(pause)

	resident, _ := e.broker.memory()
	s.add(report.Figure{Name: "idle broker: resident memory (one run)", Unit: "MiB", AtMost: 60}, resident/mebibyte)
}
