package bench

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/prefill"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// clients is the number of concurrent requests.
	clients = 32
	// manyTenants is the number of tenants of the load.
	manyTenants = 100
	// warmUp and period are the durations of a rate measurement. During the warm-up, clients open connections, and caches and
	// query plans are filled.
	warmUp = 500 * time.Millisecond
	period = 2 * time.Second
)

// environment is a broker with a database and a simulated Provisioner.
type environment struct {
	*scope

	broker      *program
	provisioner *simulated.Provisioner
	database    replica.Database
	db          *sqlx.DB
}

// start starts an environment with an empty database.
func (s *scope) start(behaviour simulated.Behaviour) *environment {
	e := s.prepare(behaviour)
	e.broker = s.startBroker(e)

	return e
}

// startPaused starts an environment whose broker accepts requests but runs no operations.
func (s *scope) startPaused() *environment {
	e := s.prepare(simulated.Behaviour{})
	e.broker = s.startBroker(e, paused)

	return e
}

// prepare creates an environment and starts everything except the broker.
func (s *scope) prepare(behaviour simulated.Behaviour) *environment {
	database := s.postgres.Database(s)

	return &environment{
		scope: s, provisioner: simulated.Start(s, behaviour),
		database: harness.PostgresSettings(database, "broker"), db: open(s, s.postgres, database.Name),
	}
}

// fill returns an environment whose database contains count instances and whose broker is stopped. If ready is true, the instances'
// runtimes are ready. Otherwise, the instances' operations wait for the Provisioner. The broker creates only one instance, which
// fill copies.
func (s *scope) fill(count int, ready bool) (*environment, []prefill.Copy) {
	e := s.start(simulated.Behaviour{Hold: !ready})
	e.create(1)

	if ready {
		e.waitFor(allSucceeded, 1)
	} else {
		e.waitFor(allWaitWithoutWorker, 1)
	}

	e.broker.stop()

	keys, err := secret.ParseKeyring(e.database.SecretKeys)
	s.check(err)

	return e, prefill.Multiply(s, e.db, keys, prefill.Options{Count: count})
}

// create creates count instances of manyTenants tenants with concurrent requests and returns the responses.
func (e *environment) create(count int) []load.Response { return e.createFor(manyTenants, count) }

// createFor is like create, but distributes the instances over the given number of tenants.
func (e *environment) createFor(tenants, count int) []load.Response {
	return e.send(count, creates(e.broker.url, tenants))
}

// send sends count concurrent requests and returns the responses.
func (e *environment) send(count int, request func(number int) load.Request) []load.Response {
	generator := load.New(clients)
	defer generator.Close()

	responses, err := generator.Count(e.Context(), count, request)
	e.check(err)

	return responses
}

// finish waits until all operations have succeeded and returns the time when the last one ended. There must be count
// operations.
func (e *environment) finish(count int) (ended time.Time) {
	e.waitFor(allSucceeded, count)
	e.get(&ended, `SELECT max(finished_at) FROM operations`)

	return ended
}

// get runs a query that returns a single row and scans it into value, which is a pointer.
func (e *environment) get(value any, query string, arguments ...any) {
	e.Helper()

	if err := e.db.GetContext(e.Context(), value, query, arguments...); err != nil {
		e.Fatalf("%s: %v", query, err)
	}
}

// Conditions for waitFor. Their parameter $1 is the number of operations.
const (
	// allSucceeded is evaluated often during measurements. It counts operations only if the indexes show that all operations
	// have ended.
	allSucceeded = `NOT EXISTS (SELECT FROM operations WHERE state = 'pending')
		AND NOT EXISTS (SELECT FROM operations WHERE state IN ('in progress', 'canceling'))
		AND (SELECT count(*) FROM operations WHERE state = 'succeeded') = $1`
	// allWait is true when all operations wait for their runtimes. Workers may be polling some of the runtimes.
	allWait = `count(*) = $1 FROM operations WHERE state = 'in progress' AND step = 'Check_Runtime'`
	// allWaitWithoutWorker is true when all operations wait for their runtimes and no worker is polling.
	allWaitWithoutWorker = allWait + ` AND lease_owner = ''`
)

// waitFor waits until the condition is true for count operations.
func (e *environment) waitFor(condition string, count int) {
	e.Helper()
	e.until(condition, func() (holds bool) {
		e.get(&holds, `SELECT `+condition, count)

		return holds
	})
}

// until waits until the condition is true. If it times out, it fails the scenario with a list of all operations' states.
func (e *environment) until(what string, condition func() bool) {
	e.Helper()

	if harness.Within(harness.Patience, condition) {
		return
	}

	var states string

	e.get(&states, `SELECT COALESCE(string_agg(line, '; '), 'there are no operations') FROM (
		SELECT count(*) || ' ' || state || ' at ' || step || ': ' || max(problem_message) AS line
		FROM operations GROUP BY state, step) AS lines`)
	e.Fatalf("waited %s for %s: %s", harness.Patience, what, states)
}

// rate measures the rate of responses. The clients open new connections.
func (s *scope) rate(request func(number int) load.Request) load.Rate {
	return s.rateOf(warmUp, period, request)
}

// rateOf is like rate, with a warm-up and a period of its own.
func (s *scope) rateOf(warmUp, period time.Duration, request func(number int) load.Request) load.Rate {
	generator := load.New(clients)
	defer generator.Close()

	rate, err := generator.For(s.Context(), warmUp, period, request)
	s.check(err)

	return rate
}

// p99 returns the 99th percentile of the latencies in milliseconds.
func p99(rate load.Rate) float64 { return milliseconds(report.Percentile(rate.Latencies, 0.99)) }

func milliseconds(value time.Duration) float64 { return float64(value) / float64(time.Millisecond) }

// fetch sends one request and returns the response.
func (s *scope) fetch(generator *load.Generator, request load.Request) load.Response {
	response, err := generator.Send(s.Context(), request)
	s.check(err)

	return response
}

// header returns the headers that Cloud Foundry sends. Requests share the header, so callers must not modify it.
func header() http.Header {
	return http.Header{
		"Authorization":                     {"Basic " + base64.StdEncoding.EncodeToString([]byte(harness.User+":"+harness.Password))},
		"Content-Type":                      {"application/json"},
		"X-Broker-Api-Version":              {"2.17"},
		"X-Broker-Api-Originating-Identity": {"cloudfoundry " + base64.StdEncoding.EncodeToString([]byte(`{"user_id":"7d1c02b5"}`))},
		"X-Broker-Api-Request-Identity":     {"5b1f0f70-9f1b-4a8b-8c8b-6f2f0e0d3c11"},
	}
}

// creates returns a function that creates requests for new instances, distributed over tenants, as Cloud Foundry sends them.
func creates(url string, tenants int) func(number int) load.Request {
	return createsWith(url, tenants, func(_, _ map[string]any) {})
}

// createsWith is like creates, but calls change to modify the body and its context.
func createsWith(url string, tenants int, change func(body, context map[string]any)) func(number int) load.Request {
	header := header()

	return func(number int) load.Request {
		tenant, space := fmt.Sprintf("tenant-%03d", number%tenants), fmt.Sprintf("space-%03d", number%tenants)
		name := fmt.Sprintf("runtime-%d", number)

		context := map[string]any{
			"platform": "cloudfoundry", "organization_guid": tenant, "space_guid": space,
			"organization_name": "an organization", "space_name": "a space", "instance_name": name,
		}
		order := map[string]any{
			"service_id": harness.ServiceID, "plan_id": harness.PlanAWS, "organization_guid": tenant, "space_guid": space,
			"context":    context,
			"parameters": map[string]any{"name": name, "autoScalerMax": 5},
		}
		change(order, context)

		body, err := json.Marshal(order)
		if err != nil {
			panic(err) // cannot happen: strings and numbers always encode
		}

		return load.Request{
			Method: http.MethodPut, URL: url + harness.InstancePath(uuid.NewString()) + harness.Incomplete,
			Header: header, Body: body, Want: http.StatusAccepted,
		}
	}
}

// gets returns a function that always returns the same GET request for url.
func gets(url string) func(int) load.Request {
	request := load.Request{Method: http.MethodGet, URL: url, Header: header(), Want: http.StatusOK}

	return func(int) load.Request { return request }
}
