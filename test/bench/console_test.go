package bench

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/harness"
)

// viewers is the number of users who watch a page.
const viewers = 200

// login logs in to the console of a broker, and returns the headers of the requests with which a page refreshes itself.
func (s *scope) login(broker string) http.Header {
	s.Helper()

	client := http.Client{Timeout: period, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()

	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, broker+"/console/login",
		strings.NewReader(url.Values{"user": {harness.User}, "password": {harness.Password}}.Encode()))
	s.check(err)

	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", broker)

	response, err := client.Do(request)
	s.check(err)
	s.check(response.Body.Close())

	if len(response.Cookies()) != 1 {
		s.Fatalf("logging in at the console: %s", response.Status)
	}

	return http.Header{"Cookie": {response.Cookies()[0].String()}, "X-Console-Live": {"1"}, "Sec-Fetch-Dest": {"empty"}}
}

// measureViewers measures how much a broker that accepts creates is slowed down by users who watch pages of the console, and how
// soon a page shows a change.
func measureViewers(s *scope) {
	e := s.startPaused()
	e.create(1)

	var instance string

	e.get(&instance, `SELECT id FROM instances LIMIT 1`)

	header := s.login(e.broker.url)
	pages := map[string]watched{
		"an instance": {page: e.broker.url + "/console/instances/" + instance, live: e.broker.url + "/console/live?instance=" + instance},
		"the list of instances, which changes with each create": {page: e.broker.url + "/console/instances", live: e.broker.url + "/console/live"},
	}

	s.rounds(func(s *scope) {
		alone := s.rate(creates(e.broker.url, manyTenants))

		for _, name := range slices.Sorted(maps.Keys(pages)) {
			var rate load.Rate

			s.watch(viewers, pages[name], header, func() { rate = s.rate(creates(e.broker.url, manyTenants)) })
			s.add(report.Figure{Name: "accepted creates/s, 200 viewers of " + name + ", compared to none", Unit: "%", AtLeast: 90},
				100*rate.PerSecond/alone.PerSecond)
		}

		s.add(report.Figure{Name: "console: a create is visible in an open list of instances: p50", Unit: "ms", AtMost: 1000},
			milliseconds(report.Median(s.visible(e, header))))
	})
}

// watched contains the path of a console page and of the page's event stream.
type watched struct{ page, live string }

// watch calls do while count viewers have a page open. Like a browser, each viewer requests the page again when the broker reports a
// change. watch calls do once all viewers have loaded the page.
func (s *scope) watch(count int, of watched, header http.Header, do func()) {
	s.Helper()

	ctx, stop := context.WithCancel(s.Context())
	generator := load.New(2 * count) // each viewer has a connection for the page and one for the stream

	var (
		group errgroup.Group
		first sync.WaitGroup
	)

	first.Add(count)

	for range count {
		group.Go(func() error {
			opened := sync.OnceFunc(first.Done)
			defer opened()

			err := generator.Watch(ctx, of.live, header, opened, func() error {
				_, err := generator.Send(ctx, load.Request{Method: http.MethodGet, URL: of.page, Header: header, Want: http.StatusOK})

				return err
			})

			select {
			case <-ctx.Done():
				return nil
			default:
				return err
			}
		})
	}

	first.Wait()
	do()
	stop()
	s.check(group.Wait())
	generator.Close()
}

// visible returns how long it takes after the response to a create until an open list of instances shows the instance, for several
// creates.
func (s *scope) visible(e *environment, header http.Header) []time.Duration {
	const times = 10

	var (
		took  []time.Duration
		shown = make(chan string, 1)
	)

	ctx, stop := context.WithCancel(s.Context())
	defer stop()

	generator := load.New(2)
	defer generator.Close()

	list := load.Request{Method: http.MethodGet, URL: e.broker.url + "/console/instances", Header: header, Want: http.StatusOK}
	opened := make(chan struct{})

	var group errgroup.Group

	group.Go(func() error {
		err := generator.Watch(ctx, e.broker.url+"/console/live", header, sync.OnceFunc(func() { close(opened) }), func() error {
			response, err := generator.Send(ctx, list)
			if err == nil {
				select {
				case shown <- string(response.Body):
				case <-ctx.Done():
				}
			}

			return err
		})

		select {
		case <-ctx.Done():
			return nil
		default:
			return err
		}
	})

	<-opened

	for range times {
		e.create(1)

		var id string

		e.get(&id, `SELECT id FROM instances ORDER BY created_at DESC, id DESC LIMIT 1`)

		for begun := time.Now(); ; {
			if strings.Contains(<-shown, "/console/instances/"+id) {
				took = append(took, time.Since(begun))

				break
			}
		}
	}

	stop()
	s.check(group.Wait())

	return took
}
