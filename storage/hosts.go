package storage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
	"golang.org/x/sync/semaphore"
)

// hostGrace is how long a new connection waits for the remaining hosts once the first host has turned out to be a primary.
const hostGrace = time.Second

// searchPause is the minimum time between two searches for the primary after one that found none. Each search costs every server a
// process and an authentication.
const searchPause = 500 * time.Millisecond

// searches limits the connections that a pool tries to open while none of the hosts is the primary. Otherwise all callers of the pool
// would connect to all hosts again and again, and slow down the failover.
type searches struct {
	// turn admits one search at a time.
	turn *semaphore.Weighted
	// failed is the last search, or nil if it found the primary.
	failed atomic.Pointer[failedSearch]
}

type failedSearch struct {
	err   error
	ended time.Time
}

func newSearches() *searches { return &searches{turn: semaphore.NewWeighted(1)} }

// find opens a connection to the primary. If the last search found no primary, only one caller searches at a time, and the callers
// that wait for it share its error. After a search that found the primary, all of them connect.
func (s *searches) find(ctx context.Context, connect func(ctx context.Context) (*guardedConnection, error)) (*guardedConnection, error) {
	last := s.failed.Load()
	if last == nil {
		return s.search(ctx, connect)
	}

	if err := s.turn.Acquire(ctx, 1); err != nil {
		return nil, errors.Join(last.err, err)
	}

	finish := sync.OnceFunc(func() { s.turn.Release(1) })
	defer finish()

	switch latest := s.failed.Load(); latest {
	case nil:
		finish()
	case last:
		select {
		case <-ctx.Done():
			return nil, errors.Join(last.err, ctx.Err())
		case <-time.After(time.Until(last.ended.Add(searchPause))):
		}
	default:
		return nil, latest.err
	}

	return s.search(ctx, connect)
}

// search calls connect and keeps its error for other callers, unless connect failed because its context has ended.
func (s *searches) search(ctx context.Context, connect func(ctx context.Context) (*guardedConnection, error)) (*guardedConnection, error) {
	opened, err := connect(ctx)

	switch {
	case err == nil:
		s.failed.Store(nil)
	case errors.Is(err, errNoPrimary) && ctx.Err() == nil:
		s.failed.Store(&failedSearch{err, time.Now()})
	}

	return opened, err
}

// host is one of the hosts in Config.Host.
type host struct {
	*pq.Connector

	// address is the host and the port, for error messages.
	address string
}

// hostsOf returns the hosts in a connection string, each with a connector.
func hostsOf(dsn string) ([]host, error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, err //nolint:wrapcheck // Open names the database
	}

	hosts := make([]host, 0, len(config.Multi)+1)

	for _, each := range append([]pq.ConfigMultihost{{Host: config.Host, Hostaddr: config.Hostaddr, Port: config.Port}}, config.Multi...) {
		own := config.Clone()
		own.Host, own.Hostaddr, own.Port, own.Multi = each.Host, each.Hostaddr, each.Port, nil

		connector, err := pq.NewConnectorConfig(own)
		if err != nil {
			return nil, err //nolint:wrapcheck // Open names the database
		}

		hosts = append(hosts, host{connector, net.JoinHostPort(each.Host, strconv.Itoa(int(each.Port)))})
	}

	return hosts, nil
}

// attempt is the result of an attempt to connect to a host.
type attempt struct {
	opened *guardedConnection
	err    error
}

// newest connects to all hosts in parallel and returns the connection to the primary with the newest timeline. During a failover,
// a former primary may still accept connections. After the first primary has responded, newest waits for at most hostGrace for
// the other hosts.
func (g guarding) newest(ctx context.Context) (*guardedConnection, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	attempts, ended := make([]attempt, len(g.hosts)), make(chan int, len(g.hosts))

	for number, host := range g.hosts {
		go func() {
			opened, err := g.open(ctx, host.Connector)
			attempts[number] = attempt{opened, err}
			ended <- number
		}()
	}

	var grace *time.Timer

	for range g.hosts {
		if number := <-ended; grace == nil && attempts[number].err == nil {
			grace = time.AfterFunc(hostGrace, cancel) // then the other attempts fail immediately
			defer grace.Stop()
		}
	}

	return g.choose(attempts)
}

// choose returns the connection to the newest primary and closes the others. It fails if there are primaries of different
// PostgreSQL clusters, and no earlier connection has shown which cluster is the right one.
func (g guarding) choose(attempts []attempt) (*guardedConnection, error) {
	var (
		chosen *guardedConnection
		errs   []error
	)

	known := server{system: g.primary.system.Load()}

	for number, each := range attempts {
		err := each.err
		if err == nil && !each.opened.server.compatible(known) {
			err = errors.Join(errOtherCluster, each.opened.Close())
		}

		if err != nil {
			errs = append(errs, fmt.Errorf("connecting to %s: %w", g.hosts[number].address, err))

			continue
		}

		if chosen == nil {
			chosen = each.opened

			continue
		}

		dropped := each.opened
		if chosen.server.timeline < each.opened.server.timeline {
			dropped, chosen = chosen, each.opened
		}

		_ = dropped.Close()

		if !chosen.server.compatible(dropped.server) {
			return nil, errors.Join(errOtherCluster, chosen.Close())
		}
	}

	if chosen == nil {
		return nil, errors.Join(errNoPrimary, errors.Join(errs...))
	}

	return chosen, nil
}
