package storage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/lib/pq"
)

// hostGrace is how long a new connection waits for the remaining hosts once the first host has turned out to be a primary.
const hostGrace = time.Second

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
