package bench

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// viewers is the number of users who watch the page of an instance, and refresh the interval at which each page requests itself.
	viewers = 200
	refresh = 2 * time.Second
)

// login logs in at the console of a broker, and returns the headers of requests that a page sends to refresh itself.
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

// measureViewers measures how much users who watch an instance in the console slow down a broker that accepts creates. Viewers are distributed
// over the interval.
func measureViewers(s *scope) {
	e := s.startPaused()
	e.create(1)

	var instance string

	e.get(&instance, `SELECT id FROM instances LIMIT 1`)

	page := load.Request{
		Method: http.MethodGet, URL: e.broker.url + "/console/instances/" + instance, Header: s.login(e.broker.url), Want: http.StatusOK,
	}

	s.rounds(func(s *scope) {
		alone := s.rate(creates(e.broker.url, manyTenants))

		watched := s.watched(page, func() load.Rate { return s.rate(creates(e.broker.url, manyTenants)) })

		s.add(report.Figure{Name: "accepted creates/s, 200 viewers of an instance in the console, compared to none", Unit: "%", AtLeast: 90},
			100*watched.PerSecond/alone.PerSecond)
	})
}

// watched returns the rate of a load during which the viewers refresh the page. The load starts when each of them has seen the page once.
func (s *scope) watched(page load.Request, measure func() load.Rate) load.Rate {
	s.Helper()

	ctx, stop := context.WithCancel(s.Context())
	generator := load.New(viewers)

	var (
		group errgroup.Group
		first sync.WaitGroup
	)

	first.Add(viewers)

	for viewer := range viewers {
		group.Go(func() error {
			seen := sync.OnceFunc(first.Done)
			defer seen()

			timer := time.NewTimer(refresh * time.Duration(viewer) / viewers)
			defer timer.Stop()

			for {
				select {
				case <-ctx.Done():
					return nil
				case <-timer.C:
				}

				if _, err := generator.Send(ctx, page); err != nil {
					if ctx.Err() != nil {
						return nil
					}

					return err
				}

				seen()
				timer.Reset(refresh)
			}
		})
	}

	first.Wait()

	rate := measure()

	stop()
	s.check(group.Wait())
	generator.Close()

	return rate
}
